"""An operator asks for other replicas through ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from nemesis.faults.administrator import Administrator
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.faults.delete_controller import CONTROLLER_PATH
from nemesis.faults.reassign_partitions import (
    REASSIGNMENT_PATH,
    ReassignPartitions,
    ReassignPartitionsStrike,
    encoded,
    requested,
)
from nemesis.history.events import Event
from nemesis.history.recorder import Recorder
from nemesis.reference.model import TopicPartition
from nemesis.reference.zk.zk_data import REASSIGN_PARTITIONS, decode_partition_reassignment
from tests.nemesis.faults.simulated_cluster import create_topic, healed, in_cluster, struck

SEEDS = range(60)
Test = Callable[[FaultContext, list[Event]], Coroutine[Any, Any, None]]


def recorded_in_cluster(test: Test) -> None:
    """Run a test in a cluster with a topic, and record what the administrator does."""

    async def scene(context: FaultContext) -> None:
        await create_topic(context)
        events: list[Event] = []
        recorder = Recorder(
            lambda line: events.append(msgspec.json.decode(line, type=Event)),
            process="administrator",
            clock=lambda: len(events),
        )
        administrator = Administrator(context.cluster, recorder)
        await test(replace(context, administrator=administrator), events)

    in_cluster(scene)


def outcomes(events: list[Event]) -> dict[tuple[str | None, int | None], list[str]]:
    """The kinds of events of the requested moves, by partition."""
    kinds: dict[tuple[str | None, int | None], list[str]] = {}
    for event in events:
        assert (event.f, event.path) == ("reassign", REASSIGNMENT_PATH)
        kinds.setdefault((event.topic, event.partition), []).append(event.kind)
    return kinds


async def replicas(context: FaultContext) -> dict[tuple[str, int], tuple[int, ...]]:
    partitions = (await context.view.snapshot()).partitions
    assert not any(state.is_moving for state in partitions.values())
    return {tp: state.replicas for tp, state in partitions.items()}


def test_the_controller_makes_the_moves() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        before = await replicas(context)
        strike = await struck(ReassignPartitions(partitions=2), context)
        assert await healed(strike, context) == {"is_left": False}
        asked = {(e.topic, e.partition): tuple(e.replicas or ()) for e in events}
        assert len(asked) == 2
        after = await replicas(context)
        assert after == before | asked
        assert all(after[tp] != before[tp] for tp in after if tp in asked)
        assert outcomes(events) == {tp: ["invoke", "ok"] for tp in asked}

    recorded_in_cluster(test)


def test_the_next_controller_makes_the_moves() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        strike = await ReassignPartitions(partitions=1).aim(context, Random(1))
        assert await context.zookeeper.delete(CONTROLLER_PATH)
        assert (await strike.apply()).is_effective
        assert await healed(strike, context) == {"is_left": False}
        assert [*outcomes(events).values()] == [["invoke", "ok"]]

    recorded_in_cluster(test)


def test_a_move_is_open_while_no_controller_takes_it() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        strike = await ReassignPartitions(partitions=1).aim(context, Random(1))
        for broker in context.cluster.brokers:
            await context.processes.kill(broker)
        await strike.apply()
        assert not (await strike.verify()).is_effective
        assert [*outcomes(events).values()] == [["invoke"]]

    recorded_in_cluster(test)


def test_a_move_that_a_controller_refused_may_have_been_made() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        state = next(iter((await context.view.snapshot()).partitions.values()))
        requests = {("gone", 0): (state, (1, 2))}
        strike = ReassignPartitionsStrike(context, "broker-1", requests)
        assert (await strike.apply()).is_effective
        await healed(strike, context)
        assert outcomes(events) == {("gone", 0): ["invoke", "info"]}

    recorded_in_cluster(test)


def test_a_request_that_is_there_is_not_overwritten() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        strike = await ReassignPartitions().aim(context, Random(1))
        for broker in context.cluster.brokers:
            await context.processes.kill(broker)
        assert await context.zookeeper.create(REASSIGNMENT_PATH, b"of another operator")
        applied = await strike.apply()
        assert (applied.is_effective, applied.detail["existed"]) == (False, True)
        znode = await context.zookeeper.get(REASSIGNMENT_PATH)
        assert znode is not None
        assert znode[0] == b"of another operator"
        assert not (await strike.verify()).is_effective
        assert [*outcomes(events).values()] == [["invoke"]] * 2

    recorded_in_cluster(test)


def test_it_does_not_aim_while_a_request_is_there() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        del events
        asking = await struck(ReassignPartitions(), context)
        with pytest.raises(SelectorUnresolved, match="exists"):
            await ReassignPartitions().aim(context, Random(1))
        await healed(asking, context)
        await ReassignPartitions().aim(context, Random(1))

    recorded_in_cluster(test)


def test_no_target_has_a_broker_that_another_fault_has_chosen() -> None:
    async def test(context: FaultContext, events: list[Event]) -> None:
        context.touched.update(["broker-2"])
        await struck(ReassignPartitions(partitions=3), context)
        assert {broker for event in events for broker in event.replicas or ()} == {1, 3}

    recorded_in_cluster(test)


def snapshot(*brokers: int, **columns: Any) -> ClusterSnapshot:
    """One partition of each of three topics on brokers 1, 2, 3."""
    state = PartitionState(leader=1, leader_epoch=1, isr=(1, 2, 3), replicas=(1, 2, 3))
    partitions = {(topic, 0): state for topic in ("t", "u", "v")}
    registered = {broker: Ephemeral(broker, broker, broker) for broker in brokers}
    return ClusterSnapshot(brokers=registered, partitions=partitions, **columns)


def targets(cluster: ClusterSnapshot, *avoided: int) -> Collection[tuple[int, ...]]:
    """All targets that are drawn."""
    drawn = [requested(cluster, 3, avoided, Random(seed)) for seed in SEEDS]
    return {target for requests in drawn for _, target in requests.values()}


def test_targets_are_of_each_kind_and_differ_from_the_replicas() -> None:
    drawn = targets(snapshot(1, 2, 3, 4))
    assert (2, 3, 1) in drawn, "another order"
    assert (1, 4, 3) in drawn, "another broker"
    assert (1, 2, 4, 3) in drawn, "one more"
    assert (1, 3) in drawn, "one fewer"
    assert (1, 2, 3) not in drawn
    assert all(2 <= len(set(target)) == len(target) <= 4 for target in drawn)


def test_targets_have_registered_brokers_only_that_are_not_to_be_avoided() -> None:
    assert set(targets(snapshot(1, 3))) == {(1, 3)}
    assert set(targets(snapshot(1, 2, 3, 4), 3, 4)) == {(1, 2)}
    assert set(targets(snapshot(1, 4), 4)) == set()


def test_two_replicas_are_kept() -> None:
    two = replace(next(iter(snapshot(1).partitions.values())), replicas=(1, 2))
    cluster = replace(snapshot(1, 2, 3), partitions={("t", 0): two})
    assert {len(target) for target in targets(cluster)} == {2, 3}


def test_partitions_that_move_or_are_to_be_deleted_are_left_alone() -> None:
    cluster = snapshot(1, 2, 3, deletions=("u",))
    moving = replace(cluster.partitions["v", 0], is_moving=True)
    cluster = replace(cluster, partitions={**cluster.partitions, ("v", 0): moving})
    assert {tp for seed in SEEDS for tp in requested(cluster, 3, (), Random(seed))} == {("t", 0)}
    assert len(requested(snapshot(1, 2, 3), 2, (), Random(1))) == 2


def test_it_is_the_znode_that_brokers_read() -> None:
    assert REASSIGNMENT_PATH == REASSIGN_PARTITIONS
    wanted = {("t", 0): (2, 3), ("u", 1): (1, 3)}
    assert decode_partition_reassignment(encoded(wanted)) == {
        TopicPartition("t", 0): (2, 3),
        TopicPartition("u", 1): (1, 3),
    }
