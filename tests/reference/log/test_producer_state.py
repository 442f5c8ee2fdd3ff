"""What a log remembers of its producers: what is sent twice stands in it once, on whichever replica."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
)
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.producer_snapshot_file import decode_snapshot, encode_snapshot
from nemesis.reference.log.producer_state_entry import (
    BatchMetadata,
    ProducerStateEntry,
    decrement_sequence,
    increment_sequence,
)
from nemesis.reference.model import TopicPartition
from tests.reference.log.batches import NOW_MS, batch

LAST = 2**31 - 1
SEQUENCES = st.integers(0, LAST)


class Clock:
    now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


def opened(
    directory: Path,
    *,
    clock: Clock | None = None,
    segment_bytes: int = 2**20,
    recovery_point: int = 0,
) -> Log:
    return Log(
        TopicPartition("t", 0),
        str(directory / "t-0"),
        disk=RealDisk(),
        config=LogConfig(segment_bytes=segment_bytes),
        recovery_point=recovery_point,
        producer_id_expiration_ms=1_000,
        wall_clock=clock or Clock(),
    )


def sent(sequence: int, *, epoch: int = 0, count: int = 1, producer_id: int = 7) -> bytes:
    return batch(count, timestamp=NOW_MS, producer=(producer_id, epoch, sequence))


def send(log: Log, sequence: int, *, epoch: int = 0, count: int = 1, producer_id: int = 7) -> int:
    """The offset that the producer is told."""
    data = sent(sequence, epoch=epoch, count=count, producer_id=producer_id)
    return log.append_as_leader(data, 0).first_offset


def replicate(leader: Log, follower: Log) -> None:
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(
            follower.log_end_offset, 2**20, leader.log_end_offset, min_one_message=True
        )
        follower.append_as_follower(data)


def test_what_is_sent_again_is_answered_with_its_first_offset_and_time(tmp_path: Path) -> None:
    log = opened(tmp_path)
    assert [send(log, sequence, count=2) for sequence in (0, 2, 4, 6, 8)] == [0, 2, 4, 6, 8]
    again = log.append_as_leader(sent(0, count=2), 1)
    assert again[:4] == (0, 1, (), NOW_MS)
    assert log.log_end_offset == 10


def test_only_the_last_five_batches_are_remembered(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for sequence in range(6):
        send(log, sequence)
    assert send(log, 1) == 1
    with pytest.raises(OutOfOrderSequenceError, match=r"sends sequence number 0 .* expected is 6"):
        send(log, 0)


@pytest.mark.parametrize("sequence", [0, 2, LAST])
def test_a_gap_or_an_older_sequence_number_is_refused(tmp_path: Path, sequence: int) -> None:
    log = opened(tmp_path)
    send(log, 0, count=1)
    if sequence == 0:
        send(log, 1)
        with pytest.raises(OutOfOrderSequenceError):
            send(log, 0, count=2)
    else:
        with pytest.raises(OutOfOrderSequenceError):
            send(log, sequence)


def test_a_higher_epoch_begins_with_sequence_number_zero_and_ends_the_one_before(
    tmp_path: Path,
) -> None:
    log = opened(tmp_path)
    send(log, 0)
    with pytest.raises(
        OutOfOrderSequenceError, match="sequence number 1 of epoch 1, expected is 0"
    ):
        send(log, 1, epoch=1)
    assert send(log, 0, epoch=1) == 1
    with pytest.raises(InvalidProducerEpochError, match="sends epoch 0, and epoch 1 has been seen"):
        send(log, 1, epoch=0)


def test_sequence_numbers_wrap_around(tmp_path: Path) -> None:
    log = opened(tmp_path)
    send(log, LAST - 1, count=4)
    assert send(log, 2) == 4
    assert send(log, LAST - 1, count=4) == 0
    send(log, LAST, producer_id=8)
    assert send(log, 0, producer_id=8) == 6


def test_of_a_producer_that_is_not_known_any_sequence_number_is_accepted(tmp_path: Path) -> None:
    assert send(opened(tmp_path), 12) == 0


@pytest.mark.parametrize("producer", [(7, -1, 0), (7, 0, -1)])
def test_a_producer_id_alone_is_refused(tmp_path: Path, producer: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidRecordError, match="producer 7 sends epoch"):
        opened(tmp_path).append_as_leader(batch(producer=producer), 0)


def test_a_refused_append_is_not_remembered(tmp_path: Path) -> None:
    log = opened(tmp_path)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(sent(0) + sent(5), 0)
    assert log.log_end_offset == 0
    assert not log.producer_state_manager.active_producers


def test_a_follower_knows_what_its_leader_has(tmp_path: Path) -> None:
    leader, follower = opened(tmp_path / "1"), opened(tmp_path / "2")
    for sequence in (0, 1, 2):
        send(leader, sequence)
    replicate(leader, follower)
    assert send(follower, 1) == 1
    assert send(follower, 3) == 3


def test_what_is_truncated_is_forgotten(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for sequence in (0, 1, 2):
        send(log, sequence)
    log.truncate_to(1)
    assert send(log, 1) == 1
    assert log.log_end_offset == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_that_is_opened_again_remembers(tmp_path: Path, is_clean: bool) -> None:
    log = opened(tmp_path, segment_bytes=200)
    for sequence in range(7):
        send(log, sequence)
    if is_clean:
        log.close()
    log = opened(tmp_path, segment_bytes=200)
    assert send(log, 6) == 6
    assert send(log, 7) == 7


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "t-0").glob("*.snapshot"))


def test_snapshots_are_taken_when_a_segment_is_rolled_and_when_the_log_is_closed(
    tmp_path: Path,
) -> None:
    log = opened(tmp_path, segment_bytes=200)
    for sequence in range(5):
        send(log, sequence)
    assert names(tmp_path) == [f"{2:020d}.snapshot", f"{4:020d}.snapshot"]
    log.close()
    assert names(tmp_path)[-1] == f"{5:020d}.snapshot"
    log = opened(tmp_path, segment_bytes=200)
    log.truncate_to(3)
    assert names(tmp_path) == [f"{2:020d}.snapshot"]


def test_a_snapshot_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=200)
    for sequence in range(5):
        send(log, sequence)
    log.close()
    damaged = tmp_path / "t-0" / names(tmp_path)[-1]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    log = opened(tmp_path, segment_bytes=200)
    assert not damaged.exists()
    assert send(log, 4) == 4
    assert send(log, 5) == 5


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), min_size=1),
    st.integers(0, 100),
    st.lists(st.integers(0, 30)),
)
def test_wherever_recovery_begins_the_same_is_remembered(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[tuple[int, int, bool]],
    recovery_point: int,
    lost_snapshots: list[int],
) -> None:
    """Producers send batches of some records, some in a new epoch; the broker is killed, and snapshots are lost."""
    directory = tmp_path_factory.mktemp("logs")
    log = opened(directory, segment_bytes=300)
    positions = dict.fromkeys(range(3), (0, 0))
    for producer_id, count, is_new_epoch in batches:
        epoch, sequence = positions[producer_id]
        if is_new_epoch:
            epoch, sequence = epoch + 1, 0
        send(log, sequence, epoch=epoch, count=count, producer_id=producer_id)
        positions[producer_id] = epoch, sequence + count
    before = log.producer_state_manager.active_producers
    snapshots = names(directory)
    for number in lost_snapshots:
        if number < len(snapshots):
            (directory / "t-0" / snapshots[number]).unlink(missing_ok=True)
    known_from = int(names(directory)[-1].partition(".")[0]) if names(directory) else 0
    log = opened(
        directory, segment_bytes=300, recovery_point=min(recovery_point, log.log_end_offset)
    )
    after = log.producer_state_manager.active_producers
    assert after.keys() == before.keys()
    for producer_id, entry in after.items():
        whole = before[producer_id]
        assert entry[:2] == whole[:2]
        assert entry.last_timestamp == whole.last_timestamp
        assert entry.batches == whole.batches[-len(entry.batches) :]
        behind = [batch for batch in whole.batches if batch.first_offset >= known_from]
        assert len(entry.batches) >= len(behind)


def test_a_producer_is_forgotten_some_time_after_its_last_batch(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    send(log, 0)
    clock.now_ms += 999
    log.producer_state_manager.remove_expired_producers()
    with pytest.raises(OutOfOrderSequenceError):
        send(log, 5)
    clock.now_ms += 1
    log.producer_state_manager.remove_expired_producers()
    assert send(log, 5) == 1


def test_a_snapshot_has_kafkas_layout() -> None:
    entry = ProducerStateEntry(7, 1, (BatchMetadata(3, 12, 1, NOW_MS),), NOW_MS)
    data = encode_snapshot([entry])
    assert data[:2] == b"\x00\x01"
    fields = ["0000000000000007", "0001", "00000003", "000000000000000c", "00000001"]
    fields += [f"{NOW_MS:016x}", "ffffffff", "ffffffffffffffff"]
    assert data[6:].hex() == "00000001" + "".join(fields)


ENTRIES = st.builds(
    lambda producer_id, epoch, metadata: ProducerStateEntry(
        producer_id, epoch, (metadata,), metadata.timestamp
    ),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.builds(
        BatchMetadata, SEQUENCES, st.integers(0, 2**63 - 1), SEQUENCES, st.integers(-1, 2**63 - 1)
    ),
)


@given(st.lists(ENTRIES), st.data())
def test_a_snapshot_is_read_as_written_and_no_damage_goes_unseen(
    entries: list[ProducerStateEntry], data: st.DataObject
) -> None:
    written = encode_snapshot(entries)
    assert decode_snapshot(written) == entries
    position = data.draw(st.integers(0, len(written) - 1))
    damaged = bytearray(written)
    damaged[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"snapshot|CRC|producers"):
        decode_snapshot(bytes(damaged))
    with pytest.raises(ValueError, match=r"snapshot|CRC|producers"):
        decode_snapshot(written[:position])


@given(SEQUENCES, SEQUENCES)
def test_sequence_numbers_are_counted_forth_and_back(sequence: int, steps: int) -> None:
    later = increment_sequence(sequence, steps)
    assert 0 <= later <= LAST
    assert decrement_sequence(later, steps) == sequence


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("again"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("restart"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("change leader"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@example([("send", 2, 2), ("truncate", 0, 0), ("send", 2, 1), ("send", 2, 1)])
@given(STEPS)
def test_whatever_happens_to_the_logs_no_batch_stands_twice_and_each_answer_is_true(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    """Two replicas; producers go on from what is in the log, and send again whatever they ever sent."""
    directory = tmp_path_factory.mktemp("logs")
    leader, follower = (opened(directory / name, segment_bytes=300) for name in "ab")
    names = ["a", "b"]
    ever: list[tuple[int, int, int]] = []
    """Producer id, sequence and count of each batch ever sent."""
    for step, number, count in steps:
        if step == "send":
            sequence = max((s + c for p, s, c, _ in stored(leader) if p == number), default=0)
            send(leader, sequence, count=count, producer_id=number)
            ever.append((number, sequence, count))
        elif step == "again" and ever:
            producer_id, sequence, count = ever[number % len(ever)]
            try:
                offset = send(leader, sequence, count=count, producer_id=producer_id)
            except OutOfOrderSequenceError:
                continue
            assert [
                s
                for p, s, _, base_offset in stored(leader)
                if (p, base_offset) == (producer_id, offset)
            ] == [sequence]
        elif step == "truncate":
            leader.truncate_to(number)
            follower.truncate_to(leader.log_end_offset)
        elif step == "restart":
            if number:
                leader.close()
            leader = opened(directory / names[0], segment_bytes=300)
        else:
            replicate(leader, follower)
            leader, follower = follower, leader
            names.reverse()
        whole = stored(leader)
        assert len({(p, s) for p, s, _, _ in whole}) == len(whole)


def stored(log: Log) -> list[tuple[int, int, int, int]]:
    """Producer id, first sequence, count and offset of every batch in the log."""
    return [
        (header.producer_id, header.base_sequence, header.record_count, header.base_offset)
        for segment in log._segments
        for header in segment.batches_from(0)
    ]
