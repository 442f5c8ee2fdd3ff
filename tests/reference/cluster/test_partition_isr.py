"""The ISR: who may join, who must leave, and what each answer of the controller means."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.partition_state import CommittedPartitionState, PendingPartitionState
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import LAG_S, Host, lisr
from tests.reference.log.batches import batch


def led_alone(tmp_path: Path) -> Host:
    """Broker 1 leads with ISR [1]; broker 2 is a replica out of it."""
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1,), replicas=(1, 2)))
    host.partition.append_as_leader(batch(4), acks=-1)
    return host


def lagging(tmp_path: Path) -> Host:
    """Broker 1 leads with ISR [1, 2] and four records that broker 2 has not fetched in time."""
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    host.fetch(2, 0)
    host.partition.append_as_leader(batch(4), acks=-1)
    host.now += LAG_S + 1
    return host


def test_a_follower_joins_at_the_high_watermark(tmp_path: Path) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 3)
    assert host.proposals.sent == []
    host.fetch(2, 4)
    (item, _) = host.proposals.sent[0]
    assert item.new_isr == ((1, 101), (2, 102))
    assert (item.leader_epoch, item.partition_epoch) == (0, 0)
    assert host.trace.of(Kind.ISR_CHANGE_PROPOSED)[-1]["maximal_isr"] == [1, 2]


def test_the_broker_epoch_of_a_fetch_is_traced_where_the_leader_did_not_know_it(
    tmp_path: Path,
) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 3)
    host.fetch(2, 4)
    learnt = {"replica": 2, "leader_epoch": 0, "broker_epoch": 102}
    assert [
        learnt.items() <= columns.items() for columns in host.trace.of(Kind.FOLLOWER_EPOCH)
    ] == [True]
    kinds = host.trace.kinds()
    assert kinds.index(Kind.FOLLOWER_EPOCH) < kinds.index(Kind.ISR_CHANGE_PROPOSED)
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1,), replicas=(1, 2)))
    host.fetch(2, 4, epoch=1, last_epoch=0)
    assert host.trace.of(Kind.FOLLOWER_EPOCH)[-1]["leader_epoch"] == 1


def test_a_joining_follower_counts_at_once_and_is_committed_by_the_answer(tmp_path: Path) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.partition.append_as_leader(batch(1), acks=-1)
    assert host.high_watermark == 4
    host.proposals.answer()
    assert host.partition.state == CommittedPartitionState(frozenset({1, 2}))
    assert host.partition.partition_epoch == 1
    assert host.trace.of(Kind.ISR_CHANGE_COMMITTED)[-1]["isr"] == [1, 2]


def test_the_high_watermark_is_not_enough_to_join_a_new_leader(tmp_path: Path) -> None:
    """KAFKA-7128: a new leader's high watermark may lag behind what was committed."""
    host = Host(tmp_path)
    host.partition.make_follower(lisr(leader=2))
    host.partition.append_as_follower(batch(4, leader_epoch=0), 1)
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1, 3)))
    assert host.high_watermark == 1
    host.fetch(2, 1, epoch=1, last_epoch=0)
    assert host.proposals.sent == []
    host.fetch(2, 4, epoch=1, last_epoch=0)
    assert host.proposals.isrs == [[1, 2, 3]]


def test_the_dead_do_not_join(tmp_path: Path) -> None:
    host = led_alone(tmp_path)
    host.alive.remove(2)
    host.fetch(2, 4)
    assert host.proposals.sent == []


def test_who_lags_too_long_leaves_and_holds_the_high_watermark_until_the_answer(
    tmp_path: Path,
) -> None:
    host = lagging(tmp_path)
    host.partition.maybe_shrink_isr()
    assert host.proposals.isrs == [[1]]
    assert host.high_watermark == 0, "the controller may not have applied it"
    before = host.progress
    host.proposals.answer()
    assert host.high_watermark == 4, "KAFKA-13091"
    assert host.progress > before


def test_who_is_at_the_end_never_leaves(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    host.partition.append_as_leader(batch(4), acks=-1)
    host.fetch(2, 4)
    host.now += 10 * LAG_S
    host.partition.maybe_shrink_isr()
    assert host.proposals.sent == []


def test_under_steady_load_reaching_the_previous_end_is_being_caught_up(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1, 2)))
    for end in range(5):
        host.partition.append_as_leader(batch(1), acks=-1)
        host.fetch(2, end)
        host.now += LAG_S / 2
    host.partition.maybe_shrink_isr()
    assert host.proposals.sent == []


def test_somebody_in_the_isr_who_is_no_replica_is_shrunk_away(tmp_path: Path) -> None:
    """KAFKA-9672."""
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 9), replicas=(1,)))
    host.partition.maybe_shrink_isr()
    assert host.proposals.isrs == [[1]]


def test_a_removed_replica_that_left_the_isr_does_not_join_again(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.partition.make_leader(lisr(isr=(1, 2), replicas=(1,)))
    host.partition.maybe_shrink_isr()
    host.proposals.answer()
    host.fetch(2, 0)
    assert host.proposals.isrs == [[1]]


def test_one_change_at_a_time(tmp_path: Path) -> None:
    host = lagging(tmp_path)
    host.partition.maybe_shrink_isr()
    host.partition.maybe_shrink_isr()
    host.fetch(2, 4)
    assert len(host.proposals.sent) == 1


@pytest.mark.parametrize("error", [ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted])
def test_a_change_that_was_not_made_is_taken_back(tmp_path: Path, error: ErrorCode) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.proposals.answer(error)
    assert host.partition.state == CommittedPartitionState(frozenset({1}))


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_request,
    ],
)
def test_who_is_out_of_date_waits_for_the_next_leader_and_isr(
    tmp_path: Path, error: ErrorCode
) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.proposals.answer(error)
    assert isinstance(host.partition.state, PendingPartitionState)
    host.fetch(2, 4)
    assert len(host.proposals.sent) == 1
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1,), replicas=(1, 2)))
    host.fetch(2, 4, epoch=1, last_epoch=0)
    assert len(host.proposals.sent) == 2


def test_any_other_error_is_tried_again(tmp_path: Path) -> None:
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.proposals.answer(ErrorCode.unknown_server_error)
    assert host.proposals.isrs == [[1, 2], [1, 2]]
    host.proposals.answer()
    assert host.partition.state == CommittedPartitionState(frozenset({1, 2}))


def test_a_lost_answer_repeated_with_the_same_partition_epoch_commits(tmp_path: Path) -> None:
    """KAFKA-14144."""
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.proposals.answer(partition_epoch=0)
    assert host.partition.state == CommittedPartitionState(frozenset({1, 2}))


def test_an_answer_of_an_earlier_leader_epoch_is_ignored(tmp_path: Path) -> None:
    """KAFKA-12686."""
    host = led_alone(tmp_path)
    host.fetch(2, 4)
    host.partition.make_leader(lisr(leader_epoch=1, isr=(1,), replicas=(1, 2)))
    host.proposals.answer()
    assert host.partition.state == CommittedPartitionState(frozenset({1}))
    assert host.partition.partition_epoch == 10
    host.fetch(2, 4, epoch=1, last_epoch=0)
    pending = host.partition.state
    host.proposals.answer(leader_epoch=0, partition_epoch=99)
    assert host.partition.state is pending


def test_a_proposal_that_cannot_be_queued_is_made_again_later(tmp_path: Path) -> None:
    host = led_alone(tmp_path)
    host.proposals.busy = True
    host.fetch(2, 4)
    assert host.partition.state == CommittedPartitionState(frozenset({1}))
    host.proposals.busy = False
    host.fetch(2, 4)
    assert host.proposals.isrs == [[1, 2]]
