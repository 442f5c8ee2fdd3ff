"""A simulated cluster of three brokers, and a client that administers its topics and does not give up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any, cast

from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta

from nemesis.history.events import Event, Kind
from nemesis.interfaces.cluster import bootstrap
from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from nemesis.simulation.zookeeper.admin import SimulatedZooKeeperAdmin
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError

PROPERTIES = {
    "zookeeper.session.timeout.ms": 2000,
    "min.insync.replicas": 1,
    "controller.retry.backoff.ms": 20,
    "controller.socket.timeout.ms": 2000,
    "replica.socket.timeout.ms": 2000,
    "replica.lag.time.max.ms": 3000,
}
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
        self.client = KafkaAdmin(
            [(a.host, a.port) for a in bootstrap(runtime.cluster)],
            client_id="test",
            source_host=runtime.cluster.client_host(runtime.cluster.clients[0]),
            rng=Random(1),
            codec=runtime.cluster.codec,
        )

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(BOUND_S):
            while not await condition():
                await asyncio.sleep(0.05)

    async def try_once(self, operation: Awaitable[Any]) -> None:
        """Do it, whatever comes of it."""
        await self.client.refresh_metadata()
        with suppress(KafkaError):
            await operation

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
            return await self.client.request(self.client.metadata.controller_id, request, 5.0)
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
        collected: list[bytes | None] = []

        async def read() -> bool:
            await self.client.refresh_metadata()
            try:
                polled = await self.client.poll(
                    topic, partition, 0, max_wait_ms=10, max_bytes=1 << 20, timeout_s=2.0
                )
            except KafkaError:
                return False
            collected.extend(record.value for record in polled.records)
            return bool(collected)

        await self.until(read)
        return collected

    async def controller(self) -> str:
        znode = await self.zookeeper.get("/controller")
        assert znode is not None
        return f"broker-{json.loads(znode[0])['brokerid']}"

    async def is_settled(self) -> bool:
        """Whether nothing is to be deleted or moved any more, and all replicas are in sync and on disk."""
        if await self.zookeeper.children("/admin/delete_topics"):
            return False
        for topic in await self.zookeeper.children("/brokers/topics"):
            znode = await self.zookeeper.get(f"/brokers/topics/{topic}")
            if znode is None:
                return False
            written = json.loads(znode[0])
            if written["adding_replicas"] or written["removing_replicas"]:
                return False
            for partition, replicas in written["partitions"].items():
                if not await self._is_whole(topic, partition, replicas):
                    return False
        return len(await self.zookeeper.children("/brokers/ids")) == len(
            self.runtime.cluster.brokers
        )

    async def _is_whole(self, topic: str, partition: str, replicas: list[int]) -> bool:
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        if (znode := await self.zookeeper.get(path)) is None:
            return False
        state = json.loads(znode[0])
        logs = {f"broker-{replica}/{topic}-{partition}" for replica in replicas}
        return (
            state["leader"] in replicas
            and sorted(state["isr"]) == sorted(replicas)
            and logs <= set(self.directories(topic))
        )

    async def is_deleted(self, topic: str) -> bool:
        paths = (f"/brokers/topics/{topic}", f"/admin/delete_topics/{topic}")
        return [await self.zookeeper.exists(path) for path in paths] == [None, None]

    def directories(self, topic: str) -> list[str]:
        """Of its logs, those left out that are deleted and whose files are removed later."""
        return [
            f"{broker}/{name}"
            for broker in self.runtime.cluster.brokers
            for name in self.runtime.machines.disks[broker].list("/data")
            if name.startswith(f"{topic}-") and not name.endswith("-delete")
        ]

    def illegal(self) -> list[Event]:
        transitions = [e.event for e in self.record.entries if e.event.kind == Kind.TRANSITION]
        assert transitions
        return [event for event in transitions if event.error is not None]


def simulate(
    test: Callable[[Cluster], Coroutine[Any, Any, None]],
    *,
    seed: int = 1,
    properties: Mapping[str, object] | None = None,
) -> None:
    """Run a test on a cluster with a topic ``t``; afterwards no illegal transition may have been tried.

    ``properties`` of the brokers come to those that all of these tests have.
    """
    loop = SimulationLoop(Schedule(seed, 0.0))
    record = MemoryRecord(loop.clock_ns)
    config = SimulationRuntimeConfig(
        broker_count=3,
        client_count=1,
        broker_properties={**PROPERTIES, **(properties or {})},
        seed=seed,
    )
    runtime = SimulationRuntime(config, loop, record)

    async def scene() -> None:
        await runtime.lifecycle.start()
        async with runtime.ensemble.admin() as zookeeper:
            cluster = Cluster(runtime, record, zookeeper)
            await cluster.create("t")
            await test(cluster)
            assert cluster.illegal() == []
        await runtime.lifecycle.stop()

    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()
