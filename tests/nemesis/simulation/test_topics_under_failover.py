"""Topics grow and are deleted while the controller, or a broker, dies in the middle of it, on virtual time.

Each moment is a run of its own: from the request on, a node is killed so many milliseconds later. Whoever is the
controller afterwards finishes; nothing of the old topic is left or served, and no illegal transition is even tried.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from random import Random
from typing import Any, cast

import pytest
from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta

from history.events import Kind
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.zookeeper.admin import SimulatedZooKeeperAdmin
from workloads.kafka.client import KafkaClient
from workloads.kafka.errors import KafkaError

PROPERTIES = {
    "zookeeper.session.timeout.ms": 2000,
    "min.insync.replicas": 1,
    "controller.retry.backoff.ms": 20,
}
MOMENTS_MS = range(0, 61, 4)
PARTITIONS = 3
BOUND_S = 40.0
_TIMEOUT = i32Timedelta.parse(timedelta(seconds=3))


class Cluster:
    """Three brokers, and a client that never gives up."""

    def __init__(
        self, runtime: SimulationRuntime, record: MemoryRecord, zookeeper: SimulatedZooKeeperAdmin
    ) -> None:
        self.runtime = runtime
        self.record = record
        self.zookeeper = zookeeper
        self.client = KafkaClient(
            [(a.host, a.port) for a in runtime.bootstrap()],
            client_id="test",
            source_host=runtime.client_host(runtime.clients[0]),
            rng=Random(1),
            codec=runtime.codec,
        )

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(BOUND_S):
            while not await condition():
                await asyncio.sleep(0.05)

    async def create(self, topic: str) -> None:
        async def created() -> bool:
            await self.client.refresh_metadata()
            if len(self.client.metadata.topics.get(topic, (0, ()))[1]) == PARTITIONS:
                return True
            try:
                await self.client.create_topic(
                    topic, partitions=PARTITIONS, replication_factor=3, timeout_s=2.0
                )
            except KafkaError:
                return False
            return True

        await self.until(created)

    async def ask(self, request: Any) -> Any:
        """Whatever the controller answers, or None."""
        await self.client.refresh_metadata()
        try:
            return await self.client._request(self.client.metadata.controller_id, request, 5.0)
        except KafkaError:
            return None

    async def delete(self, topic: str) -> Any:
        state = delete_topics.DeleteTopicState(name=cast("TopicName", topic), topic_id=None)
        timeout = _TIMEOUT
        return await self.ask(delete_topics.DeleteTopicsRequest(topics=(state,), timeout=timeout))

    async def grow(self, topic: str, count: int) -> Any:
        grown = create_partitions.CreatePartitionsTopic(
            name=cast("TopicName", topic), count=i32(count), assignments=None
        )
        return await self.ask(
            create_partitions.CreatePartitionsRequest(
                topics=(grown,), timeout=_TIMEOUT, validate_only=False
            )
        )

    async def send(self, topic: str, partition: int, value: bytes) -> None:
        async def sent() -> bool:
            await self.client.refresh_metadata()
            try:
                await self.client.send(topic, partition, [(None, value)], acks=-1, timeout_s=2.0)
            except KafkaError:
                return False
            return True

        await self.until(sent)

    async def values(self, topic: str, partition: int) -> list[bytes | None]:
        """All that is committed."""
        found: list[bytes | None] = []

        async def read() -> bool:
            await self.client.refresh_metadata()
            try:
                polled = await self.client.poll(
                    topic, partition, 0, max_wait_ms=10, max_bytes=1 << 20, timeout_s=2.0
                )
            except KafkaError:
                return False
            found.extend(record.value for record in polled.records)
            return bool(found)

        await self.until(read)
        return found

    async def controller(self) -> str:
        found = await self.zookeeper.get("/controller")
        assert found is not None
        return f"broker-{json.loads(found[0])['brokerid']}"

    async def is_deleted(self, topic: str) -> bool:
        paths = (f"/brokers/topics/{topic}", f"/admin/delete_topics/{topic}")
        return [await self.zookeeper.exists(path) for path in paths] == [None, None]

    def directories(self, topic: str) -> list[str]:
        return [
            f"{broker}/{name}"
            for broker in self.runtime.brokers
            for name in self.runtime._disks[broker].list("/data")
            if name.startswith(f"{topic}-")
        ]

    def illegal(self) -> list[str | None]:
        transitions = [e.event for e in self.record.entries if e.event.kind == Kind.TRANSITION]
        assert transitions
        return [event.detail for event in transitions if event.error is not None]


def simulate(test: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    loop = SimulationLoop(Schedule(1, 0.0))
    record = MemoryRecord(loop.clock_ns)
    config = SimulationRuntimeConfig(
        broker_count=3, client_count=1, broker_properties=PROPERTIES, seed=1
    )
    runtime = SimulationRuntime(config, loop, record)

    async def scene() -> None:
        await runtime.start()
        async with runtime.zookeeper_admin() as zookeeper:
            cluster = Cluster(runtime, record, zookeeper)
            await cluster.create("t")
            await test(cluster)
            assert cluster.illegal() == []
        await runtime.stop()

    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()


async def strike(cluster: Cluster, victim: str, after_ms: int) -> None:
    await asyncio.sleep(after_ms / 1000)
    await cluster.runtime.kill(victim)
    await asyncio.sleep(3.0)  # longer than its session
    await cluster.runtime.restart(victim)


@pytest.mark.parametrize("is_controller", [True, False], ids=["controller", "broker"])
@pytest.mark.parametrize("after_ms", MOMENTS_MS)
def test_a_deletion_survives_a_death(after_ms: int, *, is_controller: bool) -> None:
    async def test(cluster: Cluster) -> None:
        for partition in range(PARTITIONS):
            await cluster.send("t", partition, b"of the first life")
        controller = await cluster.controller()
        others = [broker for broker in cluster.runtime.brokers if broker != controller]
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


@pytest.mark.parametrize("after_ms", MOMENTS_MS)
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
        victim = next(broker for broker in cluster.runtime.brokers if broker != controller)
        await cluster.runtime.kill(victim)
        await asyncio.sleep(3.0)
        await cluster.delete("t")
        await asyncio.sleep(3.0)
        assert not await cluster.is_deleted("t")
        assert {path.split("/")[0] for path in cluster.directories("t")} == {victim}
        await cluster.runtime.restart(victim)
        await cluster.until(lambda: cluster.is_deleted("t"))
        assert cluster.directories("t") == []

    simulate(test)
