"""Leaders that write their ISRs themselves (``inter.broker.protocol.version`` 2.6) while brokers die; virtual time."""

from __future__ import annotations

import asyncio
import json

import pytest

from nemesis.history.events import Event, Kind
from tests.nemesis.simulation.administered_cluster import Cluster, simulate

IBP_2_6 = {"inter.broker.protocol.version": "2.6"}
STATE = "/brokers/topics/t/partitions/0/state"


def events(cluster: Cluster, kind: Kind) -> list[Event]:
    return [entry.event for entry in cluster.record.entries if entry.event.kind == kind]


async def state(cluster: Cluster) -> dict[str, object]:
    znode = await cluster.zookeeper.get(STATE)
    assert znode is not None
    value = json.loads(znode[0])
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("after_ms", [0, 2500, 5000, 7500])
def test_isrs_shrink_and_grow_whoever_dies_before_the_controller_is_told(after_ms: int) -> None:
    async def test(cluster: Cluster) -> None:
        controller = await cluster.controller()
        victim = next(broker for broker in cluster.runtime.cluster.brokers if broker != controller)
        # Paused for less than its session lasts, it leaves the ISR by its leaders' own writes alone.
        for partition in range(3):
            await cluster.send("t", partition, b"1")
        await cluster.runtime.processes.pause(victim)
        await asyncio.sleep(1.5)
        await cluster.runtime.processes.resume(victim)
        await cluster.runtime.processes.kill(victim)
        await asyncio.sleep(3.0)
        await cluster.runtime.processes.restart(victim)
        for partition in range(3):
            await cluster.send("t", partition, b"2")
        await cluster.until(cluster.is_settled)
        # The leaders have taken it back, and told nobody yet: a new controller has to read it.
        await asyncio.sleep(after_ms / 1000)
        await cluster.runtime.processes.kill(controller)
        await asyncio.sleep(3.0)
        await cluster.runtime.processes.restart(controller)

        async def are_readable() -> bool:
            """A new leader's high watermark grows when its followers have fetched from it, after a back-off."""
            return [await cluster.values("t", number) for number in range(3)] == [[b"1", b"2"]] * 3

        await cluster.until(are_readable)
        await cluster.until(cluster.is_settled)
        assert len(events(cluster, Kind.ISR_CHANGE_COMMITTED)) >= 3
        assert events(cluster, Kind.ALTER_PARTITION_HANDLED) == []
        children = cluster.zookeeper.children

        async def is_told() -> bool:
            return not await children("/isr_change_notification")

        await asyncio.sleep(8.0)
        await cluster.until(is_told)

    simulate(test, properties=IBP_2_6)


def test_the_state_keeps_the_epoch_of_the_controller_that_made_its_leader() -> None:
    async def test(cluster: Cluster) -> None:
        leader = f"broker-{(await state(cluster))['leader']}"
        controller = await cluster.controller()
        follower = next(b for b in cluster.runtime.cluster.brokers if b not in (leader, controller))
        await cluster.send("t", 0, b"1")
        await cluster.runtime.processes.kill(follower)
        await asyncio.sleep(3.0)
        before = await state(cluster)
        await cluster.runtime.processes.restart(follower)
        await cluster.until(cluster.is_settled)
        after = await state(cluster)
        assert (after["leader"], after["leader_epoch"]) == (
            before["leader"],
            before["leader_epoch"],
        )
        assert after["controller_epoch"] == before["controller_epoch"]
        assert len(after["isr"]) == len(before["isr"]) + 1  # type: ignore[arg-type]

    simulate(test, properties=IBP_2_6)
