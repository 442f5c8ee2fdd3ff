"""A simulated cluster of three brokers and three ZooKeeper servers, for faults to strike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

from nemesis.faults.base import Fault, FaultContext, Strike
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.interfaces.cluster import bootstrap
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.workloads.kafka.admin import KafkaAdmin

BROKER_PROPERTIES = {"zookeeper.session.timeout.ms": 2000}


def in_cluster(test: Callable[[FaultContext], Coroutine[Any, Any, None]]) -> None:
    """Run a test on virtual time against a cluster that is up."""
    loop = SimulationLoop(Schedule(1, 0.0))
    config = SimulationRuntimeConfig(
        broker_count=3, client_count=1, broker_properties=BROKER_PROPERTIES, seed=1
    )
    runtime = SimulationRuntime(config, loop, MemoryRecord(loop.clock_ns))

    async def scene() -> None:
        await runtime.lifecycle.start()
        async with runtime.ensemble.admin() as zookeeper:
            view = ZooKeeperView(zookeeper)
            while len((await view.snapshot()).brokers) < len(runtime.cluster.brokers):
                await asyncio.sleep(0.1)
            await test(FaultContext.of(runtime, view))
        await runtime.lifecycle.stop()

    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()


async def struck(fault: Fault, context: FaultContext, *, seed: int = 1) -> Strike:
    """Aim and apply; the effect is measured, and not taken for healed."""
    strike = await fault.aim(context, Random(seed))
    context.touched.update(strike.victims)
    applied = await strike.apply()
    assert applied.is_effective, applied
    return strike


async def healed(
    strike: Strike, context: FaultContext, *, within_s: float = 10.0
) -> dict[str, Any]:
    """Undo and ask until it is verified; return what was seen."""
    await strike.undo()
    context.touched.subtract(strike.victims)
    async with asyncio.timeout(within_s):
        while not (verified := await strike.verify()).is_effective:
            await asyncio.sleep(0.25)
    return verified.detail


async def create_topic(context: FaultContext) -> None:
    """Three partitions, each led by another broker, or nearly so; returns when they are led."""
    async with administrator(context) as client:
        await client.create_topic("t", partitions=3, replication_factor=3, timeout_s=5.0)
    while len((await context.view.snapshot()).partitions) < 3:
        await asyncio.sleep(0.1)


async def delete_topic(context: FaultContext) -> None:
    """Ask for the end of that topic; returns when the controller has taken it up."""
    async with administrator(context) as client:
        with suppress(TimeoutError):
            await client.delete_topic("t", timeout_s=0.5)
    while "t" not in (await context.view.snapshot()).deletions:
        await asyncio.sleep(0.1)


@asynccontextmanager
async def administrator(context: FaultContext) -> AsyncIterator[KafkaAdmin]:
    """A client that knows the cluster."""
    runtime = context.runtime
    client = KafkaAdmin(
        [(address.host, address.port) for address in bootstrap(runtime.cluster)],
        client_id="test",
        source_host=runtime.cluster.client_host(runtime.cluster.clients[0]),
        rng=Random(1),
        codec=runtime.cluster.codec,
    )
    try:
        await client.refresh_metadata()
        yield client
    finally:
        client.close()
