"""Reading what stands beside a stored log: files of the reference, and others that it does not write."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import pytest

from nemesis.history.stored_companions import IndexEntry, StoredEpoch, StoredProducer
from nemesis.history.stored_logs import StoredLog, read_logs
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import TopicPartition
from nemesis.simulation.disk import SimulatedDisk
from tests.reference.log.batches import batch

EMPTY_BATCH_BYTES = len(batch())


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("d")
    return disk


def opened(disk: SimulatedDisk, **config: Any) -> Log:
    return Log(TopicPartition("t", 0), "d/t-0", disk=disk, config=LogConfig(**config))


def read(disk: SimulatedDisk) -> StoredLog:
    [log] = read_logs(disk, ["d"])
    return log


def record(offset: int, key: bytes | None) -> bytes:
    """Return a record without headers, all of whose numbers are small."""
    body = bytes([0, 0, 2 * offset, 1 if key is None else 2 * len(key)]) + (key or b"")
    body += bytes([2]) + b"v" + bytes([0])
    return bytes([2 * len(body)]) + body


def keyed(*keys: bytes | None, **options: Any) -> bytes:
    payload = b"".join(record(offset, key) for offset, key in enumerate(keys))
    if options.get("attributes") == 1:
        payload = gzip.compress(payload)
    return batch(len(keys), payload=payload, **options)


def test_where_batches_are_and_who_wrote_them(disk: SimulatedDisk) -> None:
    log = opened(disk, segment_bytes=2 * EMPTY_BATCH_BYTES)
    for number in range(3):
        log.append_as_leader(batch(2, max_timestamp=number, producer=(7, 1, 2 * number)), 0)
    assert [
        (b.segment_offset, b.position, b.max_timestamp, b.producer_id, b.base_sequence)
        for b in read(disk).batches
    ] == [(0, 0, 0, 7, 0), (0, EMPTY_BATCH_BYTES, 1, 7, 2), (4, 0, 2, 7, 4)]


def test_indexes_of_a_segment_that_is_rolled(disk: SimulatedDisk) -> None:
    log = opened(disk, segment_bytes=3 * EMPTY_BATCH_BYTES, index_interval_bytes=1)
    for number in range(4):
        log.append_as_leader(batch(timestamp=10 * number), 0)
    assert read(disk).companions.entries == (
        IndexEntry(0, 1, EMPTY_BATCH_BYTES, None),
        IndexEntry(0, 2, 2 * EMPTY_BATCH_BYTES, None),
        IndexEntry(0, 1, None, 10),
        IndexEntry(0, 2, None, 20),
    )


def test_an_index_that_was_mapped_into_memory_ends_in_zeros(disk: SimulatedDisk) -> None:
    opened(disk)
    disk.replace(f"d/t-0/{6:020d}.log", b"")
    disk.replace(f"d/t-0/{6:020d}.index", struct.pack(">ii", 1, 70))
    disk.replace(f"d/t-0/{5:020d}.index", struct.pack(">iiii", 1, 70, 0, 0) + b"\0")
    disk.replace(f"d/t-0/{5:020d}.timeindex", struct.pack(">qiqi", 9, 1, 0, 0))
    assert read(disk).companions.entries == (
        IndexEntry(5, 6, 70, None),
        IndexEntry(5, 6, None, 9),
    )


def test_epochs(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.append_as_leader(batch(2), 3)
    log.append_as_leader(batch(), 5)
    assert read(disk).companions.epochs == (StoredEpoch(3, 0), StoredEpoch(5, 2))


def test_a_producer_without_a_batch_has_none(disk: SimulatedDisk) -> None:
    """As Kafka writes a producer of which the log has nothing but a marker."""
    opened(disk)
    without = struct.pack(">qhiqiqiq", 7, 3, -1, -1, 0, 9, 4, -1)
    with_batch = struct.pack(">qhiqiqiq", 8, 0, 2, 1, 0, 9, -1, -1)
    disk.replace(f"d/t-0/{2:020d}.snapshot", bytes(10) + without + with_batch)
    assert read(disk).companions.producers == (
        StoredProducer(2, 7, 3, -1, -1),
        StoredProducer(2, 8, 0, 2, 1),
    )


def test_snapshots_of_producers(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.append_as_leader(batch(2, producer=(7, 1, 4)), 0)
    log.close()
    assert read(disk).companions.snapshots == (2,)
    assert read(disk).companions.producers == (StoredProducer(2, 7, 1, 5, 1),)


def test_a_snapshot_that_is_cut_short(disk: SimulatedDisk) -> None:
    opened(disk)
    disk.replace(f"d/t-0/{5:020d}.snapshot", b"\0" * 20)
    with pytest.raises(ValueError, match="10 bytes hold no whole number of producers"):
        read(disk)


def test_recovery_points(disk: SimulatedDisk) -> None:
    opened(disk)
    assert read(disk).recovery_point == 0
    disk.replace("d/recovery-point-offset-checkpoint", b"0\n1\nt 0 3\n")
    assert read(disk).recovery_point == 3


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize(
    ("keys", "cleaned", "first"),
    [
        ((b"a", b"b"), 2, None),
        ((b"a", b"b", b"a"), 3, 0),
        ((b"b", b"a", b"a"), 3, 1),
        ((b"a", b"b", b"a"), 2, None),
        ((None, None), 2, None),
    ],
)
def test_keys_that_occur_twice_where_a_log_is_compacted(
    disk: SimulatedDisk,
    codec: int,
    keys: tuple[bytes | None, ...],
    cleaned: int,
    first: int | None,
) -> None:
    opened(disk).append_as_leader(keyed(*keys, attributes=codec), 0)
    disk.replace("d/cleaner-offset-checkpoint", f"0\n1\nt 0 {cleaned}\n".encode())
    assert read(disk).first_superseded == first


def test_records_that_cannot_be_read_show_nothing(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.append_as_leader(keyed(b"a", b"a"), 0)
    log.append_as_leader(batch(payload=b"\xff"), 0)
    log.append_as_leader(keyed(b"b", attributes=2), 0)
    disk.replace("d/cleaner-offset-checkpoint", b"0\n1\nt 0 2\n")
    assert read(disk).first_superseded == 0
    for cleaned in (3, 4):
        disk.replace("d/cleaner-offset-checkpoint", f"0\n1\nt 0 {cleaned}\n".encode())
        assert read(disk).first_superseded is None
