"""Replicas are moved: on a real ZooKeeper, with recorded connections for brokers. AlterPartition makes the ISR grow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import AlterPartitionItem
from nemesis.reference.controller.controller_context import PartitionAndReplica, ReplicaState
from nemesis.reference.controller.controller_events import (
    ApiPartitionReassignment,
    ListPartitionReassignments,
    PartitionReassignmentIsrChange,
)
from nemesis.reference.controller.partition_reassignments import target_problem
from nemesis.reference.model import ApiError, LeaderAndIsr, LeaderRecoveryState, TopicPartition
from nemesis.reference.trace import Kind
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.zk_data import ReplicaAssignment
from tests.reference.controller.cluster import TOPIC_ID, Node, create_topic, nodes, run, until

TP = TopicPartition("t", 0)
BEGUN = ApiError(ErrorCode.none)
DELETED, STOPPED = True, False


async def reassign(node: Node, target: tuple[int, ...] | None) -> ApiError:
    """Ask for the replicas of t-0; returns the answer for it."""
    error, answers = await node.controller.ask(ApiPartitionReassignment({TP: target}))
    assert error is ErrorCode.none
    return answers[TP]


async def in_progress(node: Node) -> dict[TopicPartition, ReplicaAssignment]:
    error, reassignments = await node.controller.ask(ListPartitionReassignments(None))
    assert error is ErrorCode.none
    return dict(reassignments)


async def assignment(node: Node) -> ReplicaAssignment:
    """What the topic's znode says."""
    (topic,) = await node.zk_client.topics.get_replica_assignments(["t"])
    return topic.partitions[0]


async def leader_and_isr(node: Node) -> LeaderAndIsr:
    return (await node.state("t", 0)).leader_and_isr


def leader_known(node: Node) -> int:
    """The leader that the controller knows."""
    return node.controller.context.leadership[TP].leader_and_isr.leader


async def propose_isr(controller: Node, leader: Node, *isr: int) -> None:
    """The leader proposes an ISR, as it does when a follower has caught up."""
    state = await leader_and_isr(controller)
    assert state.leader == leader.controller.broker_id
    item = AlterPartitionItem(
        None,
        TOPIC_ID,
        0,
        state.leader_epoch,
        tuple((member, -1) for member in isr),
        LeaderRecoveryState.RECOVERED,
        state.partition_epoch,
    )
    error, (answer,) = await controller.controller.alter_partitions(
        leader.controller.broker_id, leader.controller.broker_epoch, [item]
    )
    assert (error, getattr(answer, "isr", answer)) == (ErrorCode.none, isr)


async def until_begun(node: Node, added: int) -> None:
    """Wait for the end of phase A."""
    replica = PartitionAndReplica(TP, added)
    await until(lambda: node.controller.context.replica_state(replica) is ReplicaState.NEW)


async def until_moved(node: Node, *replicas: int) -> None:
    """Wait until the topic's znode has these replicas and nothing is in progress."""
    context = node.controller.context
    await until(lambda: context.assignment(TP).replicas == replicas)
    await until(lambda: TP not in context.partitions_being_reassigned)
    assert await assignment(node) == ReplicaAssignment(replicas)
    assert await in_progress(node) == {}


def stops(node: Node, broker_id: int) -> list[tuple[int, bool]]:
    """(leader epoch, delete) of each StopReplica for t-0."""
    return [
        (state.leader_epoch, state.delete_partition)
        for request in node.wire.to(broker_id, "StopReplica")
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def requests_sent(node: Node, broker_id: int) -> list[Any]:
    """The states of t-0 in each LeaderAndIsr."""
    return [
        state
        for request in node.wire.to(broker_id, "LeaderAndIsr")
        for topic in request.topic_states
        for state in topic.partition_states
    ]


def illegal(node: Node) -> list[dict[str, Any]]:
    """Transitions that were refused."""
    return [event for event in node.tracer.of(Kind.TRANSITION) if "error" in event]


def with_topic(
    address: str, replicas: Sequence[int], test: Callable[..., Any], brokers: int = 4
) -> None:
    """Run ``test`` on the brokers' nodes, the first of which is the controller, with t-0 on these replicas."""

    async def scenario() -> None:
        async with nodes(address, *range(1, brokers + 1)) as started:
            await create_topic(started[0], "t", tuple(replicas))
            await until(lambda: TP in started[0].controller.context.leadership)
            await test(*started)
            for node in started:
                assert illegal(node) == []

    run(scenario())


def test_replicas_are_added_first_and_removed_when_the_new_ones_are_in_sync(
    zookeeper_address: str,
) -> None:
    async def test(first: Node, second: Node, *_: Node) -> None:
        assert await reassign(first, (3, 4)) == BEGUN
        moving = ReplicaAssignment((3, 4, 1, 2), adding_replicas=(3, 4), removing_replicas=(1, 2))
        assert await assignment(first) == moving
        assert await in_progress(first) == {TP: moving}
        assert await leader_and_isr(first) == LeaderAndIsr(1, 1, (1, 2), partition_epoch=1)
        await until(lambda: len(requests_sent(first, 4)) == 2)
        for broker_id, is_new in ((1, False), (2, False), (3, True), (4, True)):
            state = requests_sent(first, broker_id)[-1]
            assert (state.leader, state.leader_epoch, state.is_new) == (1, 1, is_new)
            assert state.replicas == (3, 4, 1, 2)
            assert (state.adding_replicas, state.removing_replicas) == ((3, 4), (1, 2))

        await propose_isr(first, first, 1, 2, 3)
        assert await in_progress(first) == {TP: moving}
        await propose_isr(first, first, 1, 2, 3, 4)
        await until_moved(first, 3, 4)
        state = await leader_and_isr(first)
        assert (state.leader, state.isr) == (3, (3, 4))
        # Created, told of the assignment, elected, and one epoch for each replica that left the ISR.
        assert [(how, leader, epoch) for how, leader, epoch, _ in first.elected("t", 0)] == [
            ("new", 1, 0),
            ("no-op", 1, 1),
            ("reassign", 3, 2),
            ("remove-from-isr", 3, 3),
            ("remove-from-isr", 3, 4),
        ]
        await until(lambda: len(stops(first, 2)) == 2)
        assert stops(first, 1) == [(2, STOPPED), (4, DELETED)]
        assert stops(first, 2) == [(3, STOPPED), (4, DELETED)]
        assert stops(first, 3) == stops(first, 4) == []
        assert requests_sent(first, 4)[-1].replicas == (3, 4)

        def last_metadata() -> tuple[int, ...]:
            request = first.wire.to(2, "UpdateMetadata")[-1]
            return tuple(request.topic_states[0].partition_states[0].replicas)

        await until(lambda: last_metadata() == (3, 4))

    with_topic(zookeeper_address, (1, 2), test)


def test_a_leader_that_stays_leads_in_a_new_epoch(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        assert await reassign(first, (3, 1)) == BEGUN
        await propose_isr(first, first, 1, 2, 3)
        await until_moved(first, 3, 1)
        assert await leader_and_isr(first) == LeaderAndIsr(1, 3, (1, 3), partition_epoch=4)
        assert [how for how, *_ in first.elected("t", 0)] == [
            "new",
            "no-op",
            "no-op",
            "remove-from-isr",
        ]

    with_topic(zookeeper_address, (1, 2), test, brokers=3)


@pytest.mark.parametrize(
    ("replicas", "target"),
    [((1, 2, 3), (1, 2)), ((1, 2, 3), (3, 2)), ((1, 2, 3), (3, 1, 2)), ((1, 2), (1, 2))],
)
def test_without_new_replicas_it_is_over_at_once(
    zookeeper_address: str, replicas: tuple[int, ...], target: tuple[int, ...]
) -> None:
    async def test(first: Node, *_: Node) -> None:
        assert await reassign(first, target) == BEGUN
        await until_moved(first, *target)
        state = await leader_and_isr(first)
        assert set(state.isr) == set(target)
        assert state.leader == (1 if 1 in target else target[0])

    with_topic(zookeeper_address, replicas, test, brokers=3)


def test_a_cancelled_reassignment_leaves_what_was_there(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        assert (await reassign(first, None)).code is ErrorCode.no_reassignment_in_progress
        assert await reassign(first, (3, 4)) == BEGUN
        await propose_isr(first, first, 1, 2, 3)
        assert await reassign(first, None) == BEGUN
        await until_moved(first, 1, 2)
        assert (await leader_and_isr(first)).isr == (1, 2)
        await until(lambda: len(stops(first, 3)) == len(stops(first, 4)) == 2)
        assert [delete for _, delete in stops(first, 3)] == [STOPPED, DELETED]
        assert (await reassign(first, None)).code is ErrorCode.no_reassignment_in_progress

    with_topic(zookeeper_address, (1, 2), test)


def test_a_later_reassignment_replaces_an_earlier_one(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        assert await reassign(first, (3, 2)) == BEGUN
        assert await reassign(first, (4, 2)) == BEGUN
        assert await assignment(first) == ReplicaAssignment(
            (4, 2, 1), adding_replicas=(4,), removing_replicas=(1,)
        )
        await until(lambda: len(stops(first, 3)) == 2)
        await propose_isr(first, first, 1, 2, 4)
        await until_moved(first, 4, 2)

    with_topic(zookeeper_address, (1, 2), test)


def test_a_leader_that_is_stopped_is_followed_by_another_one(zookeeper_address: str) -> None:
    async def test(first: Node, second: Node, third: Node, _: Node) -> None:
        assert await reassign(first, (3, 4)) == BEGUN
        await propose_isr(first, second, 2, 1, 3)
        await second.stop()
        await until(lambda: leader_known(first) == 3)
        assert await reassign(first, (4, 1)) == BEGUN
        state = await leader_and_isr(first)
        assert (state.leader, state.isr) == (1, (1,))
        assert leader_known(first) == 1
        await propose_isr(first, first, 1, 4)
        await until_moved(first, 4, 1)

    with_topic(zookeeper_address, (2, 1), test)


def test_what_is_alone_in_the_isr_is_never_stopped(zookeeper_address: str) -> None:
    async def test(first: Node, second: Node, *_: Node) -> None:
        assert await reassign(first, (3, 4)) == BEGUN
        await propose_isr(first, second, 2, 3)
        await second.stop()
        await until(lambda: leader_known(first) == 3)
        for target in (None, (4, 2)):
            answer = await reassign(first, target)
            assert answer.code is ErrorCode.invalid_replica_assignment
            assert "unclean election" in (answer.message or "")
        assert (await leader_and_isr(first)).isr == (3,)
        assert stops(first, 3) == []

    with_topic(zookeeper_address, (2,), test)


def test_it_is_not_over_while_no_new_replica_could_lead(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        first.controller.context.shutting_down_broker_ids.add(2)
        assert await reassign(first, (2,)) == BEGUN
        assert leader_known(first) == 1
        assert list(await in_progress(first)) == [TP]
        first.controller.context.shutting_down_broker_ids.clear()
        first.controller.event_manager.put(PartitionReassignmentIsrChange(TP))
        await until_moved(first, 2)
        assert leader_known(first) == 2

    with_topic(zookeeper_address, (1, 2), test, brokers=2)


def test_a_leaders_own_write_of_the_isr_is_seen(zookeeper_address: str) -> None:
    """As leaders do it under inter.broker.protocol.version 2.6, without asking the controller."""

    async def test(first: Node, second: Node, *_: Node) -> None:
        assert await reassign(first, (1, 3)) == BEGUN
        state = await first.state("t", 0)
        grown = replace(state, leader_and_isr=replace(state.leader_and_isr, isr=(1, 2, 3)))
        await second.zookeeper.set_data(
            zk_data.state_path(TP),
            zk_data.encode_state(grown),
            state.leader_and_isr.partition_epoch,
        )
        await until_moved(first, 1, 3)

    with_topic(zookeeper_address, (1, 2), test, brokers=3)


def test_partitions_move_both_ways_at_once(zookeeper_address: str) -> None:
    async def test(first: Node) -> None:
        other = TopicPartition("t", 1)
        error, answers = await first.controller.ask(
            ApiPartitionReassignment({TP: (2,), other: (1,)})
        )
        assert (error, dict(answers)) == (ErrorCode.none, {TP: BEGUN, other: BEGUN})
        assert list(await in_progress(first)) == [TP, other]
        error, reassignments = await first.controller.ask(
            ListPartitionReassignments((other, TopicPartition("t", 9)))
        )
        assert dict(reassignments) == {
            other: ReplicaAssignment((1, 2), adding_replicas=(1,), removing_replicas=(2,))
        }
        await propose_isr(first, first, 1, 2)
        await until(lambda: leader_known(first) == 2)
        assert list(await in_progress(first)) == [other]

    async def scenario() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, _):
            await create_topic(first, "t", (1,), (2,))
            await until(lambda: len(first.controller.context.leadership) == 2)
            await test(first)

    run(scenario())


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ((), ErrorCode.invalid_replica_assignment),
        ((2, 2), ErrorCode.invalid_replica_assignment),
        ((-1, 2), ErrorCode.invalid_replica_assignment),
        ((1, 9), ErrorCode.invalid_replica_assignment),
    ],
)
def test_a_wrong_target_is_refused_and_nothing_is_written(
    zookeeper_address: str, target: tuple[int, ...], error: ErrorCode
) -> None:
    async def test(first: Node, *_: Node) -> None:
        answer = await reassign(first, target)
        assert answer.code is error
        assert answer.message
        assert await assignment(first) == ReplicaAssignment((1, 2))
        assert await in_progress(first) == {}

    with_topic(zookeeper_address, (1, 2), test, brokers=2)


def test_what_does_not_exist_cannot_be_moved(zookeeper_address: str) -> None:
    async def test(first: Node, second: Node) -> None:
        for missing in (TopicPartition("t", 7), TopicPartition("absent", 0)):
            _, answers = await first.controller.ask(ApiPartitionReassignment({missing: (1, 2)}))
            assert answers[missing].code is ErrorCode.unknown_topic_or_partition
            _, answers = await first.controller.ask(ApiPartitionReassignment({missing: None}))
            assert answers[missing].code is ErrorCode.no_reassignment_in_progress
        assert await second.controller.ask(ApiPartitionReassignment({TP: (1, 2)})) == (
            ErrorCode.not_controller,
            {},
        )
        assert await second.controller.ask(ListPartitionReassignments(None)) == (
            ErrorCode.not_controller,
            {},
        )

    with_topic(zookeeper_address, (1, 2), test, brokers=2)


def test_a_target_is_judged_by_what_it_adds() -> None:
    moving = ReplicaAssignment((1, 2))
    assert target_problem(moving, (2, 1), live_broker_ids=[]) is None
    assert target_problem(moving, (2, 3), live_broker_ids=[3]) is None
    assert target_problem(moving, (2, 3), live_broker_ids=None) is None
    assert "[3], live broker list: [1, 2]" in str(target_problem(moving, (2, 3), [1, 2]))


# /admin/reassign_partitions


async def ask_in_znode(node: Node, data: bytes) -> None:
    await node.zookeeper.create(zk_data.REASSIGN_PARTITIONS, data)


async def znode_is_gone(node: Node) -> None:
    async with asyncio.timeout(15):
        while await node.zookeeper.exists(zk_data.REASSIGN_PARTITIONS) is not None:
            await asyncio.sleep(0.01)


def test_the_znode_asks_and_is_removed_when_all_is_done(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        for target, isr in (((1, 3), (1, 2, 3)), ((1, 2), (1, 3, 2))):
            await ask_in_znode(first, zk_data.encode_partition_reassignment({TP: target}))
            await until_begun(first, target[-1])
            await propose_isr(first, first, *isr)
            await until_moved(first, *target)
            await znode_is_gone(first)

    with_topic(zookeeper_address, (1, 2), test, brokers=3)


def test_what_cannot_be_is_taken_out_of_the_znode(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        wrong = {TopicPartition("absent", 0): (1,), TopicPartition("t", 9): (1, 1)}
        await ask_in_znode(first, zk_data.encode_partition_reassignment({TP: (1, 3), **wrong}))
        async with asyncio.timeout(15):
            while await first.zk_client.reassignment.get_partition_reassignment() != {TP: (1, 3)}:
                await asyncio.sleep(0.01)
        await until_begun(first, 3)
        await propose_isr(first, first, 1, 2, 3)
        await until_moved(first, 1, 3)
        await znode_is_gone(first)
        # That the znode was written again has begun nothing anew.
        elections = [how for how, *_ in first.elected("t", 0)]
        assert elections == ["new", "no-op", "no-op", "remove-from-isr"]

    with_topic(zookeeper_address, (1, 2), test, brokers=3)


@pytest.mark.parametrize(
    "data",
    [b"what", b"[]", b'{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}'],
)
def test_a_foreign_znode_is_removed_and_the_controller_goes_on(
    zookeeper_address: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(first: Node, *_: Node) -> None:
        await ask_in_znode(first, data)
        await znode_is_gone(first)
        assert await assignment(first) == ReplicaAssignment((1, 2))
        assert await reassign(first, (1,)) == BEGUN
        await until_moved(first, 1)

    with_topic(zookeeper_address, (1, 2), test, brokers=2)
    assert "/admin/reassign_partitions" in caplog.text


def test_the_api_overrides_the_znode(zookeeper_address: str) -> None:
    async def test(first: Node, *_: Node) -> None:
        await ask_in_znode(first, zk_data.encode_partition_reassignment({TP: (1, 3)}))
        await until(lambda: TP in first.controller.context.partitions_being_reassigned)
        assert await reassign(first, (1, 4)) == BEGUN
        await znode_is_gone(first)
        assert (await assignment(first)).target_replicas == (1, 4)

    with_topic(zookeeper_address, (1, 2), test)


# Failover


def fails_once(node: Node, phase: str, *, after: bool) -> None:
    """Let a step of the next reassignment fail as a bug would: the controller then gives up its office."""
    phases = node.controller._parts._reassignments._phases
    step = getattr(phases, phase)

    async def fail(*arguments: Any) -> None:
        setattr(phases, phase, step)
        if after:
            await step(*arguments)
        raise RuntimeError(f"{phase} breaks down")

    setattr(phases, phase, fail)


async def controller_of(*candidates: Node) -> Node:
    """The one that has taken the office of a later epoch and has finished its failover."""

    def heirs() -> list[Node]:
        return [
            node
            for node in candidates
            if node.controller.is_active
            and [
                ended["controller_epoch"] for ended in node.tracer.of(Kind.CONTROLLER_FAILOVER)[-1:]
            ]
            == [node.controller.context.epoch]
            and node.controller.context.epoch > 1
        ]

    await until(lambda: len(heirs()) == 1)
    return heirs()[0]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "phase",
    [
        "_update_current_reassignment",
        "_complete",
        "_move_leader_if_required",
        "_remove_replicas",
        "_forget_reassignment",
    ],
)
def test_another_controller_goes_on_where_one_broke_down(
    zookeeper_address: str, phase: str, after: bool
) -> None:
    async def test(*all_nodes: Node) -> None:
        first = all_nodes[0]
        await ask_in_znode(first, zk_data.encode_partition_reassignment({TP: (3, 4)}))
        await until(lambda: len(requests_sent(first, 4)) == 2)
        fails_once(first, phase, after=after)
        await propose_isr(first, first, 1, 2, 3, 4)
        heir = await controller_of(*all_nodes)
        await until_moved(heir, 3, 4)
        await znode_is_gone(heir)
        state = await leader_and_isr(heir)
        assert (state.leader, state.isr) == (3, (3, 4))
        for removed in (1, 2):
            deletions = [d for node in all_nodes for _, d in stops(node, removed)]
            assert deletions[-1] is DELETED

    with_topic(zookeeper_address, (1, 2), test)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_cancellation_that_broke_down_leaves_nobody_unknown_in_the_isr(
    zookeeper_address: str, after: bool
) -> None:
    async def test(*all_nodes: Node) -> None:
        first = all_nodes[0]
        assert await reassign(first, (3, 4)) == BEGUN
        await propose_isr(first, first, 1, 2, 3)
        fails_once(first, "_remove_unneeded_replicas", after=after)
        error, _ = await first.controller.ask(ApiPartitionReassignment({TP: None}))
        assert error is ErrorCode.not_controller
        heir = await controller_of(*all_nodes)
        assert (await assignment(heir)).target_replicas == (3, 4)
        assert (await leader_and_isr(heir)).isr == ((1, 2) if after else (1, 2, 3))
        assert await reassign(heir, None) == BEGUN
        await until_moved(heir, 1, 2)
        assert (await leader_and_isr(heir)).isr == (1, 2)

    with_topic(zookeeper_address, (1, 2), test)


def test_one_that_has_just_begun_is_begun_again(zookeeper_address: str) -> None:
    async def test(*all_nodes: Node) -> None:
        first = all_nodes[0]
        fails_once(first, "_start", after=False)
        error, _ = await first.controller.ask(ApiPartitionReassignment({TP: (1, 3)}))
        assert error is ErrorCode.not_controller
        heir = await controller_of(*all_nodes)
        assert list(await in_progress(heir)) == [TP]
        assert requests_sent(heir, 3)[-1].adding_replicas == (3,)
        await propose_isr(heir, first, 1, 2, 3)
        await until_moved(heir, 1, 3)

    with_topic(zookeeper_address, (1, 2), test, brokers=3)


def test_a_broker_that_comes_back_is_told_again(zookeeper_address: str) -> None:
    async def test(first: Node, _: Node, third: Node) -> None:
        assert await reassign(first, (1, 3)) == BEGUN
        await third.stop()
        await until(lambda: 3 not in first.controller.context.live_brokers)
        before = (await leader_and_isr(first)).leader_epoch
        again = await Node(zookeeper_address, 3).start()
        await until(lambda: 3 in first.controller.context.live_brokers)
        await until(lambda: requests_sent(first, 3)[-1].leader_epoch == before + 1)
        await propose_isr(first, first, 1, 2, 3)
        await until_moved(first, 1, 3)
        await again.stop()

    with_topic(zookeeper_address, (1, 2), test, brokers=3)
