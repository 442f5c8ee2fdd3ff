"""DeleteRecords on a leader, the low watermark, and a follower that follows."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.record_deletion import delete_records_on_leader, low_watermark
from nemesis.reference.log.errors import OffsetOutOfRangeError, OffsetsOutOfOrderError
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import Host, lisr
from tests.reference.log.batches import assigned, batch


def leader(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2)))
    for _ in range(3):
        host.partition.append_as_leader(batch(2), -1)
    host.fetch(2, 6)
    assert host.high_watermark == 6
    return host


def test_the_low_watermark_waits_for_every_live_replica(tmp_path: Path) -> None:
    host = leader(tmp_path)
    assert delete_records_on_leader(host.partition, 4) == 4
    assert low_watermark(host.partition, host.alive.__contains__) == -1  # 3 has not fetched yet
    host.alive = {1, 2}
    assert low_watermark(host.partition, host.alive.__contains__) == 0  # 2 has said where it starts
    replica = host.partition.remote_replicas[2]
    progress = host.progress
    host.partition.update_follower_fetch_state(
        replica, fetch_offset=6, log_start_offset=4, broker_epoch=102
    )
    assert host.progress == progress + 1, "whoever waits for the low watermark looks again"
    assert low_watermark(host.partition, host.alive.__contains__) == 4


def test_records_go_up_to_the_high_watermark_and_no_further(tmp_path: Path) -> None:
    host = leader(tmp_path)
    host.partition.append_as_leader(batch(2), -1)
    with pytest.raises(OffsetOutOfRangeError):
        delete_records_on_leader(host.partition, 7)
    with pytest.raises(ReplicaError) as refused:
        delete_records_on_leader(host.partition, -2)
    assert refused.value.code is ErrorCode.offset_out_of_range
    assert delete_records_on_leader(host.partition, -1) == 6
    log = host.partition.leader_log
    assert (log.log_start_offset, log.log_end_offset) == (6, 8)


def follower(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.partition.make_follower(lisr(leader=2))
    return host


def test_a_follower_starts_where_its_leader_does(tmp_path: Path) -> None:
    host = follower(tmp_path)
    host.partition.append_as_follower(assigned(batch(4), 0, 0), 4, 3)
    log = host.partition.log
    assert log is not None
    assert (log.log_start_offset, log.high_watermark) == (3, 4)


def test_a_follower_left_behind_begins_anew_within_a_batch(tmp_path: Path) -> None:
    """The leader starts at 12, in the middle of a batch: that batch is taken whole."""
    host = follower(tmp_path)
    host.partition.append_as_follower(assigned(batch(4), 0, 0), 4, 0)
    host.partition.truncate_fully_and_start_at(12)
    (cut,) = host.trace.of(Kind.TRUNCATE)
    assert (cut["offset"], cut["log_start_offset"], cut["log_end_offset"]) == (12, 12, 12)
    host.partition.append_as_follower(assigned(batch(5), 10, 1), 15, 12)
    log = host.partition.log
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (12, 15, 15)
    assert log.segments[0].base_offset == 10
    assert log.leader_epoch_cache.entries == ((1, 12),) or log.latest_epoch == 1
    with pytest.raises(OffsetsOutOfOrderError):
        host.partition.append_as_follower(assigned(batch(5), 13, 1), 15, 12)
