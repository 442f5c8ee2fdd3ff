"""An operator asks for preferred leaders through ZooKeeper."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import PartitionState
from nemesis.faults.delete_controller import CONTROLLER_PATH
from nemesis.faults.elect_preferred import ELECTION_PATH, ElectPreferred, encoded
from nemesis.faults.graceful_restart import GracefulRestart
from nemesis.reference.model import TopicPartition
from nemesis.reference.zk.preferred_replica_election import decode
from nemesis.reference.zk.zk_data import PREFERRED_REPLICA_ELECTION
from tests.nemesis.faults.simulated_cluster import create_topic, healed, in_cluster, struck


async def states(context: FaultContext) -> list[PartitionState]:
    return list((await context.view.snapshot()).partitions.values())


async def leaders(context: FaultContext) -> dict[tuple[str, int], int]:
    return {tp: state.leader for tp, state in (await context.view.snapshot()).partitions.items()}


def test_leaders_go_back_to_preferred_replicas() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        before = await leaders(context)
        victim = f"broker-{next(iter(before.values()))}"
        await healed(await struck(GracefulRestart(selector=victim), context), context)
        while any(len(state.isr) < 3 for state in await states(context)):
            await asyncio.sleep(0.1)
        assert await leaders(context) != before, "the leaders are not balanced yet"
        strike = await struck(ElectPreferred(), context)
        assert await healed(strike, context) == {"is_left": False}
        assert all(state.leader == state.replicas[0] for state in await states(context))

    in_cluster(test)


def test_the_next_controller_takes_the_request() -> None:
    async def test(context: FaultContext) -> None:
        await create_topic(context)
        strike = await ElectPreferred().aim(context, Random(1))
        assert await context.zookeeper.delete(CONTROLLER_PATH)
        assert (await strike.apply()).is_effective
        assert await healed(strike, context) == {"is_left": False}

    in_cluster(test)


def test_without_a_controller_no_broker_is_asked() -> None:
    async def test(context: FaultContext) -> None:
        assert await context.zookeeper.delete(CONTROLLER_PATH)
        with pytest.raises(SelectorUnresolved):
            await ElectPreferred().aim(context, Random(1))

    in_cluster(test)


def test_it_is_the_znode_that_brokers_read() -> None:
    assert ELECTION_PATH == PREFERRED_REPLICA_ELECTION
    assert decode(encoded([("t", 0), ("t", 1)])) == [TopicPartition("t", 0), TopicPartition("t", 1)]
