"""The leader's high watermark: what it waits for and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition_reads import list_offset
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import LAG_S, Host, lisr
from tests.reference.log.batches import batch


def test_it_is_the_smallest_end_offset_of_the_isr(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr())
    host.partition.append_as_leader(batch(5), acks=-1)
    host.fetch(2, 5)
    assert host.high_watermark == 0, "broker 3 has not fetched in this epoch"
    host.fetch(3, 0)
    assert host.high_watermark == 0
    host.partition.append_as_leader(batch(3), acks=-1)
    host.fetch(3, 8)
    assert host.high_watermark == 5
    host.fetch(2, 8)
    assert host.high_watermark == 8


def test_it_waits_for_a_member_that_is_no_replica_any_more(tmp_path: Path) -> None:
    """A reassignment takes broker 3 out of the assignment first: until it is out of the ISR it may be elected."""
    host = Host(tmp_path)
    host.partition.make_leader(lisr(replicas=(1, 2)))
    host.partition.append_as_leader(batch(1), acks=-1)
    host.fetch(2, 1)
    assert host.high_watermark == 0
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1, 2), replicas=(1, 2)))
    host.fetch(2, 1)
    assert host.high_watermark == 1
    assert list(host.partition.remote_replicas) == [2]


def test_alone_in_the_isr_the_leader_decides(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1,)))
    host.partition.append_as_leader(batch(2), acks=-1)
    assert host.high_watermark == 2
    assert host.trace.kinds()[-2:] == [Kind.APPEND, Kind.HIGH_WATERMARK]
    assert host.trace.of(Kind.HIGH_WATERMARK)[-1] | {"topic_id": None} == {
        "topic": "t",
        "topic_id": None,
        "partition": 0,
        "leader_epoch": 0,
        "high_watermark": 2,
        "log_end_offset": 2,
        "isr": [1],
        "maximal_isr": [1],
    }


def test_it_never_falls_when_a_follower_fetches_lower(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    host.partition.append_as_leader(batch(4), acks=-1)
    host.fetch(2, 4)
    host.fetch(2, 1)
    assert host.high_watermark == 4


def test_it_waits_for_a_replica_that_is_about_to_join(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1,), replicas=(1, 2)))
    host.proposals.busy = True  # the expansion cannot be sent yet
    host.fetch(2, 0)
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.high_watermark == 0
    host.now += LAG_S + 1
    host.partition.maybe_shrink_isr()
    assert host.high_watermark == 1, "it is no longer caught up, nobody waits for it"


def test_it_does_not_wait_for_a_dead_replica_that_was_caught_up(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1,), replicas=(1, 2)))
    host.proposals.busy = True
    host.fetch(2, 0)
    host.alive.remove(2)
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.high_watermark == 1


def test_it_stays_while_the_isr_is_too_small(tmp_path: Path) -> None:
    host = Host(tmp_path, min_insync_replicas=2)
    host.partition.make_leader(lisr(isr=(1,)))
    host.partition.append_as_leader(batch(1), acks=1)
    assert host.high_watermark == 0
    host.fetch(2, 1)
    assert host.proposals.isrs == [[1, 2]]
    assert host.high_watermark == 0, "the committed ISR is still too small"
    host.proposals.answer()
    assert host.high_watermark == 1


def test_a_new_epoch_of_the_same_leader_forgets_what_was_fetched(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    host.partition.append_as_leader(batch(4), acks=-1)
    host.fetch(2, 2)
    host.partition.make_leader(lisr(leader_epoch=2, isr=(1, 2), replicas=(1, 2)))
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.high_watermark == 2
    host.fetch(2, 4, epoch=2, last_epoch=0)
    assert host.high_watermark == 4


def test_no_acks_all_append_under_min_insync_replicas(tmp_path: Path) -> None:
    host = Host(tmp_path, min_insync_replicas=2)
    host.partition.make_leader(lisr(isr=(1,)))
    with pytest.raises(ReplicaError) as refused:
        host.partition.append_as_leader(batch(1), acks=-1)
    assert refused.value.code is ErrorCode.not_enough_replicas
    assert host.end_offset == 0


def test_min_insync_replicas_is_never_more_than_there_are(tmp_path: Path) -> None:
    host = Host(tmp_path, min_insync_replicas=3)
    host.partition.make_leader(lisr(isr=(1,), replicas=(1,)))
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.partition.check_enough_replicas_reach_offset(1) == (True, ErrorCode.none)


def test_an_append_is_settled_by_high_watermark_and_isr(tmp_path: Path) -> None:
    host = Host(tmp_path, min_insync_replicas=2)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.partition.check_enough_replicas_reach_offset(1) == (False, ErrorCode.none)
    host.fetch(2, 1)
    assert host.partition.check_enough_replicas_reach_offset(1) == (True, ErrorCode.none)
    host.now += LAG_S + 1
    host.partition.append_as_leader(batch(1), acks=1)
    host.partition.maybe_shrink_isr()
    host.proposals.answer()
    assert host.partition.check_enough_replicas_reach_offset(1) == (
        True,
        ErrorCode.not_enough_replicas_after_append,
    )
    host.partition.make_follower(lisr(leader=2, leader_epoch=1))
    assert host.partition.check_enough_replicas_reach_offset(1) == (
        True,
        ErrorCode.not_leader_or_follower,
    )


def test_a_consumer_does_not_see_the_end_before_the_epoch_start_is_committed(
    tmp_path: Path,
) -> None:
    host = Host(tmp_path)
    host.partition.make_follower(lisr(leader=2))
    host.partition.append_as_follower(batch(3, leader_epoch=0), 1)
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1, 3)))
    with pytest.raises(ReplicaError) as refused:
        list_offset(host.partition, -1, -1, -1)
    assert refused.value.code is ErrorCode.offset_not_available
    assert list_offset(host.partition, -1, 1, -2).offset == 3
    assert list_offset(host.partition, -2, 1, -1).offset == 0
    host.fetch(3, 3, epoch=1, last_epoch=0)
    assert list_offset(host.partition, -1, -1, -1).offset == 3


def test_a_follower_bounds_the_leaders_high_watermark_by_its_own_end(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_follower(lisr(leader=2))
    host.partition.append_as_follower(batch(3, leader_epoch=0), 10)
    assert host.high_watermark == 3
    host.partition.append_as_follower(b"", 2)
    assert host.high_watermark == 2
    assert host.trace.of(Kind.HIGH_WATERMARK) == []
