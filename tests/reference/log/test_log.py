from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import (
    CorruptRecordError,
    InconsistentTopicIdError,
    InvalidRecordError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    RecordBatchListTooLargeError,
    RecordTooLargeError,
    UnsupportedForMessageFormatError,
)
from nemesis.reference.log.log_append_info import AppendedBatch
from nemesis.reference.model import OffsetAndEpoch
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.protocol.records import read_records, rebuilt
from nemesis.workloads.kafka.record_batch import build
from tests.reference.log.batches import batch, with_codec
from tests.reference.log.logs import MANY, open_log, ranges, read_all


def test_the_leader_numbers_what_it_appends(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = batch(3)
    info = log.append_as_leader(first, 5)
    assert info[:2] == (0, 2)
    crc = next(iter_batches(first)).crc
    assert info.batches == (AppendedBatch(0, 2, 5, crc, len(first)),)
    info = log.append_as_leader(batch(2) + batch(1), 6)
    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in info.batches] == [
        (3, 4, 6),
        (5, 5, 6),
    ]
    assert log.log_end_offset == 6
    assert log.leader_epoch_cache.entries == ((5, 0), (6, 3))


def test_a_follower_holds_the_leaders_bytes(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader"), open_log(tmp_path / "follower")
    leader.append_as_leader(batch(3) + batch(2), 1)
    leader.append_as_leader(batch(1), 4)
    data = leader.read(0, MANY, MANY, min_one_message=True)
    info = follower.append_as_follower(data)
    assert [b.last_offset for b in info.batches] == [2, 4, 5]
    assert follower.read(0, MANY, MANY, min_one_message=True) == data
    assert follower.leader_epoch_cache.entries == leader.leader_epoch_cache.entries


def test_a_follower_leaves_out_a_batch_that_was_cut_short(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    second = batch(base_offset=1, leader_epoch=0)
    info = log.append_as_follower(batch(leader_epoch=0) + second[:-1])
    assert (info.last_offset, log.log_end_offset) == (0, 1)
    assert log.append_as_follower(second[:30]).batches == ()
    assert log.log_end_offset == 1


@pytest.mark.parametrize("base_offset", [0, 1])
def test_a_follower_takes_only_what_continues_its_log(tmp_path: Path, base_offset: int) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(2, leader_epoch=0))
    with pytest.raises(OffsetsOutOfOrderError):
        log.append_as_follower(batch(base_offset=base_offset, leader_epoch=0))
    with pytest.raises(OffsetsOutOfOrderError):
        log.append_as_follower(batch(2, base_offset=2) + batch(base_offset=3))
    assert log.log_end_offset == 2


def test_bad_records_append_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path, max_message_bytes=200, segment_bytes=300)
    damaged = batch()[:-1] + b"?"
    old = batch()[:16] + b"\x01" + batch()[17:]
    refused = [
        (b"", InvalidRecordError),
        (batch(2, last_offset_delta=4), InvalidRecordError),
        (batch(attributes=0x20), InvalidRecordError),
        (batch() + damaged, CorruptRecordError),
        (batch() + batch()[:20], CorruptRecordError),
        (old, UnsupportedForMessageFormatError),
        (batch(payload=b"x" * 200), RecordTooLargeError),
        (batch(payload=b"x" * 100) * 2, RecordBatchListTooLargeError),
    ]
    for records, error in refused:
        with pytest.raises(error):
            log.append_as_leader(records, 1)
    with pytest.raises(CorruptRecordError):
        log.append_as_follower(batch(leader_epoch=1) + batch(base_offset=1)[:-1] + b"?")
    assert log.log_end_offset == 0
    assert log.latest_epoch is None


def test_reads_stop_below_the_upper_bound(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(2) + batch(3) + batch(1), 0)
    upper_bounds = {
        upper: ranges(log.read(0, MANY, upper, min_one_message=True)) for upper in range(7)
    }
    assert upper_bounds == {
        0: [],
        1: [],
        2: [(0, 1)],
        3: [(0, 1)],
        4: [(0, 1)],
        5: [(0, 1), (2, 4)],
        6: [(0, 1), (2, 4), (5, 5)],
    }


def test_reads_start_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(2) + batch(3) + batch(1), 0)
    starts = {s: ranges(log.read(s, MANY, MANY, min_one_message=True))[:1] for s in range(7)}
    assert starts == {
        0: [(0, 1)],
        1: [(0, 1)],
        2: [(2, 4)],
        3: [(2, 4)],
        4: [(2, 4)],
        5: [(5, 5)],
        6: [],
    }


def test_max_bytes_cuts_between_batches_and_one_message_may_exceed_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = batch()
    log.append_as_leader(data * 4, 0)

    def count(max_bytes: int, *, min_one_message: bool) -> int:
        return len(ranges(log.read(1, max_bytes, MANY, min_one_message=min_one_message)))

    assert count(2 * len(data), min_one_message=False) == 2
    assert count(2 * len(data) - 1, min_one_message=False) == 1
    assert count(len(data) - 1, min_one_message=False) == 0
    assert count(len(data) - 1, min_one_message=True) == 1
    assert count(0, min_one_message=True) == 1


@pytest.mark.parametrize("offset", [-1, 3])
def test_a_read_outside_the_log_is_out_of_range(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(2), 0)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, MANY, MANY, min_one_message=True)


def test_every_offset_is_found_in_a_log_with_an_index(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=30_000)
    batches: list[tuple[int, int]] = []
    for i in range(60):
        info = log.append_as_leader(batch(1 + i % 3, payload=b"x" * (137 * (i % 17))), 0)
        batches.append(info[:2])
    names = sorted(path.name for path in (tmp_path / "t-0").iterdir())
    assert sum(name.endswith(".index") for name in names) >= 2
    for index_is in ("in memory", "read", "damaged", "missing"):
        for offset in range(log.log_end_offset):
            holding = next(b for b in batches if b[1] >= offset)
            assert ranges(log.read(offset, 1, MANY, min_one_message=True)) == [holding]
        assert read_all(log) == batches, index_is
        for index in (tmp_path / "t-0").glob("*.index"):
            if index_is == "read":
                index.write_bytes(index.read_bytes()[:-3])
            if index_is == "damaged":
                index.unlink()
        log = open_log(tmp_path, segment_bytes=30_000)


def test_every_offset_is_found_after_a_truncation_within_the_index(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batches = [log.append_as_leader(batch(2, payload=b"x" * 1500), 0)[:2] for _ in range(30)]
    log.truncate_to(21)
    del batches[10:]
    batches += [log.append_as_leader(batch(1, payload=b"x" * 900), 1)[:2] for _ in range(40)]
    assert read_all(log) == batches
    for offset in range(log.log_end_offset):
        holding = next(b for b in batches if b[1] >= offset)
        assert ranges(log.read(offset, 1, MANY, min_one_message=True)) == [holding]


def test_every_offset_is_found_when_only_the_last_positions_are_in_memory(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batches = [log.append_as_leader(batch(1 + number % 3), 0)[:2] for number in range(300)]
    del batches[200:]
    log.truncate_to(batches[-1][1] + 1)
    batches += [log.append_as_leader(batch(2), 1)[:2] for _ in range(200)]
    holding = {offset: b for b in batches for offset in range(b[0], b[1] + 1)}

    assert len(holding) == log.log_end_offset
    for offset, (first, last) in holding.items():
        assert ranges(log.read(offset, 1, MANY, min_one_message=True)) == [(first, last)]
        assert log.read(offset, MANY, last, min_one_message=True) == b""
    reopened = open_log(tmp_path)
    for offset in range(0, log.log_end_offset, 7):
        assert reopened.read(offset, 500, MANY, min_one_message=True) == log.read(
            offset, 500, MANY, min_one_message=True
        )


def test_a_file_changed_behind_our_back_is_a_storage_error(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch() + batch() + batch(), 0)
    file = tmp_path / "t-0" / ("0" * 20 + ".log")
    for changed in (bytes(file.stat().st_size), file.read_bytes()[:30]):
        file.write_bytes(changed)
        with pytest.raises(KafkaStorageError):
            log.read(1, MANY, MANY, min_one_message=True)


def test_the_index_file_is_in_kafkas_format(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=10_000)
    big = batch(2, payload=b"x" * 2500)
    for _ in range(8):
        log.append_as_leader(big, 0)
    rolled = next((tmp_path / "t-0").glob("*0006.index"))
    position = 2 * len(big)
    assert rolled.read_bytes() == (5).to_bytes(4, "big") + position.to_bytes(4, "big")


def test_truncation_removes_whole_batches_and_lowers_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(2), 1)
    log.append_as_leader(batch(3), 2)
    assert log.update_high_watermark(5) == 5
    assert log.truncate_to(4)
    assert (log.log_end_offset, log.high_watermark) == (2, 2)
    assert log.leader_epoch_cache.entries == ((1, 0),)
    assert not log.truncate_to(2)
    assert not log.truncate_to(9)
    log.append_as_leader(batch(1), 3)
    assert read_all(log) == [(0, 1), (2, 2)]


def test_truncation_to_the_end_forgets_an_epoch_without_records(tmp_path: Path) -> None:
    """KAFKA-10706: such an epoch is what the new leader contradicts; kept, the follower truncates forever."""
    log = open_log(tmp_path)
    log.append_as_leader(batch(2), 1)
    assert log.maybe_assign_epoch_start_offset(5, 2)
    assert not log.truncate_to(2)
    assert log.latest_epoch == 1


def test_truncation_across_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for _ in range(12):
        log.append_as_leader(batch(2), 0)
    assert len(list((tmp_path / "t-0").glob("*.log"))) > 3
    assert log.truncate_to(3)
    assert log.log_end_offset == 2
    assert [p.name for p in (tmp_path / "t-0").glob("*.log")] == ["0" * 20 + ".log"]
    log.append_as_leader(batch(1), 1)
    assert read_all(open_log(tmp_path)) == [(0, 1), (2, 2)]


def test_the_high_watermark_stays_within_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(4), 0)
    assert [log.update_high_watermark(n) for n in (-1, 3, 9, 2)] == [0, 3, 4, 2]


def test_end_offset_for_epoch_speaks_of_the_logs_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.end_offset_for_epoch(0) is None
    assert log.epoch_at_end == -1
    log.append_as_leader(batch(4), 2)
    log.maybe_assign_epoch_start_offset(3, 4)
    assert log.end_offset_for_epoch(2) == OffsetAndEpoch(offset=4, leader_epoch=2)
    assert log.end_offset_for_epoch(3) == OffsetAndEpoch(offset=4, leader_epoch=3)
    assert log.epoch_at_end == 3


def test_a_batch_is_found_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=250)
    for timestamp in (100, 300, 200, 400):
        log.append_as_leader(batch(2, timestamp=timestamp, max_timestamp=timestamp + 10), 7)
    for opened in (log, open_log(tmp_path, segment_bytes=250)):
        offsets = {t: opened.offset_for_timestamp(t) for t in (0, 100, 110, 111, 301, 399, 411)}
        assert offsets == {
            0: (100, 0, 7),
            100: (100, 0, 7),
            110: (110, 0, 7),
            111: (300, 2, 7),
            301: (310, 2, 7),
            399: (400, 6, 7),
            411: None,
        }
    log.truncate_to(6)
    assert log.offset_for_timestamp(399) is None


def test_the_first_record_with_the_latest_time_is_found(tmp_path: Path) -> None:
    """The record itself, within its batch, in any of the segments."""
    log = open_log(tmp_path, segment_bytes=250)
    assert log.record_of_max_timestamp() is None
    for timestamp in (100, 400, 200, 400):
        sent = build([(b"first", b"v"), (b"second", b"v")], timestamp)
        log.append_as_leader(sent, 7)
    for opened in (log, open_log(tmp_path, segment_bytes=250)):
        assert opened.record_of_max_timestamp() == (400, 2, 7)
    log.truncate_to(2)
    assert log.record_of_max_timestamp() == (100, 0, 7)


def test_the_latest_time_may_be_that_of_any_record_of_a_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sent = build([(b"first", b"v"), (b"second", b"v")], 100)
    header = next(iter_batches(sent))
    first, second = read_records(sent, header)
    later = rebuilt(header, [first, second._replace(timestamp=300)], horizon_ms=None)
    log.append_as_leader(with_codec(later, 1), 7)
    assert log.record_of_max_timestamp() == (300, 1, 7)


def test_records_without_a_time_and_records_that_cannot_be_read_are_not_found(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(build([(b"key", b"v")], -1), 7)
    assert log.record_of_max_timestamp() is None
    log.append_as_leader(batch(payload=b"damaged", timestamp=5), 7)
    with pytest.raises(CorruptRecordError):
        log.record_of_max_timestamp()


def test_a_log_keeps_its_topic_id(tmp_path: Path) -> None:
    topic_id = UUID("4f2c1a90-66bb-4a0d-8f6e-90f4ad3be555")
    log = open_log(tmp_path)
    assert log.topic_id is None
    log.assign_topic_id(topic_id)
    text = (tmp_path / "t-0" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: TywakGa7Sg2PbpD0rTvlVQ\n"
    again = open_log(tmp_path)
    assert again.topic_id == topic_id
    with pytest.raises(InconsistentTopicIdError):
        again.assign_topic_id(UUID(int=1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected the lines"),
        ("garbage\n", "expected the lines"),
        ("version: 1\ntopic_id: x\n", "expected the lines"),
        ("version: 0\ntopic_id: short\n", "22 characters, not 5: 'short'"),
        (f"version: 0\ntopic_id: {'!' * 22}\n", "base64: '!{22}' is not"),
    ],
)
def test_a_malformed_topic_id_is_a_storage_error(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "partition.metadata").write_text(text)
    with pytest.raises(KafkaStorageError, match=f"partition.metadata: .*{sentence}"):
        open_log(tmp_path)


class CountingDisk(RealDisk):
    def __init__(self) -> None:
        super().__init__()
        self.synced = 0

    def fsync(self, path: str) -> None:
        super().fsync(path)
        self.synced += 1


def test_syncs_only_after_flush_interval_messages(tmp_path: Path) -> None:
    disk = CountingDisk()
    log = open_log(tmp_path, disk=disk, flush_interval_messages=5)
    log.append_as_leader(batch(4), 0)
    assert disk.synced == 0
    log.append_as_leader(batch(1), 0)
    assert disk.synced == 1
    log.append_as_leader(batch(4), 0)
    assert disk.synced == 1
    log.close()
    assert disk.synced == 2


def test_a_segment_is_synced_before_the_next_one_starts(tmp_path: Path) -> None:
    disk = CountingDisk()
    log = open_log(tmp_path, disk=disk, segment_bytes=100)
    log.append_as_leader(batch(), 0)
    assert disk.synced == 0
    log.append_as_leader(batch(), 0)
    assert disk.synced == 1
