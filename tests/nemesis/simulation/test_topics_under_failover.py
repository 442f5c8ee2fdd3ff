"""Topics grow and are deleted while the controller, or a broker, dies in the middle of it, on virtual time.

Each moment is a run of its own: from the request on, a node is killed so many milliseconds later. Whoever is the
controller afterwards finishes; nothing of the old topic is left or served, and no illegal transition is even tried.
"""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from tests.nemesis.simulation.administered_cluster import PARTITIONS, Cluster, simulate

START_TIMES_MS = range(0, 61, 4)


async def strike(cluster: Cluster, victim: str, after_ms: int) -> None:
    await asyncio.sleep(after_ms / 1000)
    await cluster.runtime.processes.kill(victim)
    await asyncio.sleep(3.0)  # longer than its session
    await cluster.runtime.processes.restart(victim)


@pytest.mark.parametrize("is_controller", [True, False], ids=["controller", "broker"])
@pytest.mark.parametrize("after_ms", START_TIMES_MS)
def test_a_deletion_survives_a_death(after_ms: int, *, is_controller: bool) -> None:
    async def test(cluster: Cluster) -> None:
        for partition in range(PARTITIONS):
            await cluster.send("t", partition, b"of the first life")
        controller = await cluster.controller()
        others = [broker for broker in cluster.runtime.cluster.brokers if broker != controller]
        victim = controller if is_controller else others[0]
        deleting = asyncio.create_task(cluster.delete("t"))
        await strike(cluster, victim, after_ms)
        await deleting
        # Whether the request had been heard or not: asked for again, it comes to its end.
        await cluster.delete("t")
        await cluster.until(lambda: cluster.is_deleted("t"))
        assert cluster.directories("t") == []
        await cluster.create("t")
        await cluster.send("t", 1, b"of the second life")
        assert await cluster.values("t", 1) == [b"of the second life"]

    simulate(test)


@pytest.mark.parametrize("after_ms", START_TIMES_MS)
def test_growth_survives_the_death_of_the_controller(after_ms: int) -> None:
    async def test(cluster: Cluster) -> None:
        growing = asyncio.create_task(cluster.grow("t", PARTITIONS + 2))
        await strike(cluster, await cluster.controller(), after_ms)
        await growing
        answer = await cluster.grow("t", PARTITIONS + 2)
        if answer is not None:
            assert answer.results[0].error_code in (ErrorCode.none, ErrorCode.invalid_partitions)
        await cluster.send("t", PARTITIONS + 1, b"new")
        assert await cluster.values("t", PARTITIONS + 1) == [b"new"]

    simulate(test)


def test_a_deletion_waits_for_a_broker_that_is_down() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.send("t", 0, b"of the first life")
        controller = await cluster.controller()
        victim = next(broker for broker in cluster.runtime.cluster.brokers if broker != controller)
        await cluster.runtime.processes.kill(victim)
        await asyncio.sleep(3.0)
        await cluster.delete("t")
        await asyncio.sleep(3.0)
        assert not await cluster.is_deleted("t")
        assert {path.split("/")[0] for path in cluster.directories("t")} == {victim}
        await cluster.runtime.processes.restart(victim)
        await cluster.until(lambda: cluster.is_deleted("t"))
        assert cluster.directories("t") == []

    simulate(test)
