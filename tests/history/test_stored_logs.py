"""Reading the files of a stopped broker, which another program has written: the reference's own log."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from nemesis.history.stored_logs import StoredLog, marked_batches, read_logs
from nemesis.history.stored_markers import StoredMarker, marker_of
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG
from nemesis.simulation.disk import SimulatedDisk
from tests.reference.log.batches import batch

ID = UUID(int=7)
SEGMENT = f"d/t-0/{0:020d}.log"


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_directory("d")
    return disk


def write(disk: SimulatedDisk, counts: list[int], *, segment_bytes: int = 1 << 30) -> Log:
    log = Log(
        TopicPartition("t", 0), "d/t-0", disk=disk, config=LogConfig(segment_bytes=segment_bytes)
    )
    log.assign_topic_id(ID)
    for epoch, count in enumerate(counts):
        log.append_as_leader(batch(count), epoch)
    return log


def read(disk: SimulatedDisk) -> StoredLog:
    [log] = read_logs(disk, ["d"])
    return log


def test_batches_of_several_segments(disk: SimulatedDisk) -> None:
    write(disk, [2, 1, 3], segment_bytes=100)
    stored = read(disk)
    assert (stored.topic, stored.partition, stored.topic_id) == ("t", 0, ID)
    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in stored.batches] == [
        (0, 1, 0),
        (2, 2, 1),
        (3, 5, 2),
    ]
    assert (stored.start_offset, stored.end_offset, stored.damage) == (0, 6, None)


def test_checkpoints(disk: SimulatedDisk) -> None:
    write(disk, [2, 1])
    disk.replace("d/replication-offset-checkpoint", b"0\n2\nother 1 9\nt 0 3\n")
    disk.replace("d/log-start-offset-checkpoint", b"0\n1\nt 0 1\n")
    disk.replace("d/cleaner-offset-checkpoint", b"0\n1\nt 0 2\n")
    stored = read(disk)
    assert (stored.high_watermark, stored.start_offset, stored.cleaned_below) == (3, 1, 2)


@pytest.mark.parametrize("seed", range(8))
def test_a_log_is_read_up_to_where_it_is_damaged(disk: SimulatedDisk, seed: int) -> None:
    write(disk, [1, 1, 1])
    [done] = disk.corrupt_tail(Random(seed))
    stored = read(disk)
    assert stored.damage is not None
    assert stored.damage.startswith(f"{SEGMENT} is damaged at byte ")
    assert stored.end_offset == len(stored.batches) < 3
    assert Log(TopicPartition("t", 0), "d/t-0", disk=disk, config=LogConfig()).log_end_offset == (
        stored.end_offset
    )
    assert done.lost_bytes > 0


def test_logs_on_their_way_out_and_other_files_are_left_out(disk: SimulatedDisk) -> None:
    write(disk, [1])
    disk.rename("d/t-0", "d/t-0.0123-delete")
    disk.replace("d/meta.properties", b"broker.id=1\n")
    assert list(read_logs(disk, ["d", "nowhere"])) == []


def test_an_empty_log(disk: SimulatedDisk) -> None:
    write(disk, [])
    assert read(disk).batches == ()


def test_the_metadata_log_of_a_quorum_is_not_a_log_of_a_replica(disk: SimulatedDisk) -> None:
    write(disk, [2])
    Log(
        TopicPartition("__cluster_metadata", 0),
        "d/__cluster_metadata-0",
        disk=disk,
        config=LogConfig(),
    )
    assert read(disk).topic == "t"


def test_markers_of_transactions(disk: SimulatedDisk) -> None:
    log = write(disk, [2])
    records = batch(attributes=TRANSACTIONAL_FLAG, producer=(7, 3, 0))
    log.append_as_leader(records, 0)
    for control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = end_transaction_batch(7, 3, EndTransactionMarker(control_type, 300), 0)
        log.append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    stored = read(disk).batches
    assert [item.producer_id for item in stored] == [-1, 7, -1, -1]
    assert [item.marked_producer for item in stored] == [-1, -1, 7, 7]
    assert [item.marker for item in stored] == [
        None,
        None,
        StoredMarker(is_commit=False, coordinator_epoch=300),
        StoredMarker(is_commit=True, coordinator_epoch=300),
    ]


KAFKA_COMMIT = bytes.fromhex(
    "00000000000000040000003e0000000002"
    "00000000" + "0030" + "00000000" + "0000000000000000" * 2 + "0000000000000007" + "0003"
    "ffffffff" + "00000001" + "200000000800000001" + "0c" + "000000000009" + "00"
)
"""A control batch, written by hand after Kafka's format: base offset 4, producer 7, epoch 3, coordinator epoch 9."""


def test_a_marker_in_kafkas_format() -> None:
    assert marker_of(KAFKA_COMMIT) == StoredMarker(is_commit=True, coordinator_epoch=9)
    kraft = KAFKA_COMMIT.replace(bytes.fromhex("0800000001"), bytes.fromhex("0800000002"))
    assert marker_of(kraft) is None, "the new leader of a quorum"
    without_record = KAFKA_COMMIT[:57] + bytes(4)
    assert marker_of(without_record) is None
    assert marker_of(KAFKA_COMMIT[:-4]) is None, "cut short"


def test_where_the_transactions_of_markers_begin(disk: SimulatedDisk) -> None:
    log = write(disk, [2])
    for sequence in (0, 1):
        log.append_as_leader(batch(attributes=TRANSACTIONAL_FLAG, producer=(7, 3, sequence)), 0)
    for epoch in (4, 5):
        marker = EndTransactionMarker(ControlRecordType.ABORT, epoch)
        log.append_as_leader(end_transaction_batch(7, 3, marker, 0), 0, AppendOrigin.COORDINATOR)
    marked = [
        (item.base_offset, marker.coordinator_epoch, first)
        for item, marker, first in marked_batches(read(disk).batches)
    ]
    assert marked == [(4, 4, 2), (5, 5, -1)]
