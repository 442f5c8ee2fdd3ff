"""A real cluster to put load on: three brokers of one target, a topic with three replicas, files that vanish."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import psutil

from nemesis.history.events import Event
from nemesis.interfaces.cluster import bootstrap as addresses_of
from nemesis.interfaces.links import Address
from nemesis.runtimes.config import ClusterConfig
from nemesis.runtimes.local import LocalRuntime
from nemesis.runtimes.local.addresses import AddressPlan
from nemesis.runtimes.local.nodes import LocalNodes
from nemesis.targets.base import BrokerEndpoint
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError

BROKERS = 3
MIN_INSYNC_REPLICAS = 2
TOPIC = "load"
PARTITIONS = 6
READY_TIMEOUT_S = 180.0
"""Thousands of logs are made, each with files of its own."""

_DECODER = msgspec.json.Decoder(Event)


class DirectNodes(LocalNodes):
    """Brokers advertise where they listen: clients and replicas go past the proxy, only ZooKeeper is behind it."""

    def endpoint(self, broker: str, plan: AddressPlan) -> BrokerEndpoint:
        endpoint = super().endpoint(broker, plan)
        return replace(endpoint, advertised=endpoint.bind)


class Cluster:
    """A started cluster whose topic ``load`` has a leader for each of its partitions."""

    def __init__(
        self, runtime: LocalRuntime, bootstrap: list[Address], directory: Path, partitions: int
    ) -> None:
        self.runtime = runtime
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._directory = directory
        self._brokers = [
            psutil.Process(runtime.cluster.pid(broker)) for broker in runtime.cluster.brokers
        ]

    @property
    def bootstrap_servers(self) -> str:
        """As librdkafka takes it."""
        return ",".join(map(str, self._bootstrap))

    def broker_cpu_s(self) -> float:
        """Processor time that the brokers have used so far, in seconds, all together."""
        return sum(sum(broker.cpu_times()[:2]) for broker in self._brokers)

    def client(self, name: str, *bootstrap: Address) -> KafkaAdmin:
        """A client of ours, which first asks the brokers named, or any; the caller closes it."""
        return KafkaAdmin(
            [(address.host, address.port) for address in bootstrap or self._bootstrap],
            client_id=name,
            source_host=self.runtime.cluster.client_host(self.runtime.cluster.clients[0]),
            rng=Random(name),
        )

    def broker_memory_bytes(self) -> list[int]:
        """What each broker has resident (RSS), pages that it shares with others included."""
        return [int(broker.memory_info().rss) for broker in self._brokers]

    def trace(self, broker: str) -> Path:
        """The file into which the broker traces."""
        return self._directory / "raw" / f"{broker}.jsonl"

    async def create_topic(self) -> None:
        """Return once a broker lists the topic with all its leaders."""
        client = self.client("admin")
        try:
            while not await client.refresh_metadata() or len(client.metadata.brokers) < BROKERS:
                await asyncio.sleep(0.1)
            await client.create_topic(
                TOPIC,
                partitions=self._partitions,
                replication_factor=BROKERS,
                timeout_s=READY_TIMEOUT_S,
            )
            while not (await client.refresh_metadata() and self._is_complete(client)):
                await asyncio.sleep(0.1)
        except KafkaError as error:
            raise RuntimeError(f"the topic cannot be created: {error.name}") from error
        finally:
            client.close()

    async def until_in_sync(self) -> None:
        """Return once every broker has been told of every partition, and all replicas of each are in its ISR.

        A broker is told of the metadata after it has taken its roles, so that nothing is under way any more.
        """
        for broker in self._bootstrap:
            while not await self._lists_all_in_sync(broker):
                await asyncio.sleep(0.2)

    async def _lists_all_in_sync(self, broker: Address) -> bool:
        client = self.client("watcher", broker)
        try:
            return (
                await client.refresh_metadata()
                and self._is_complete(client)
                and all(
                    len(partition.isr) == BROKERS
                    for partition in client.metadata.topics[TOPIC].partitions.values()
                )
            )
        finally:
            client.close()

    def _is_complete(self, client: KafkaAdmin) -> bool:
        topic = client.metadata.topics.get(TOPIC)
        return topic is not None and sorted(topic.partitions) == list(range(self._partitions))


def events_after(trace: Path, start: int) -> tuple[list[Event], int]:
    """Return the events of a broker after byte ``start``, whole lines only, and where the next read begins."""
    with trace.open("rb") as file:
        file.seek(start)
        lines, _, _ = file.read().rpartition(b"\n")
    events = [_DECODER.decode(line) for line in lines.splitlines()]
    return events, start + len(lines) + bool(lines)


@asynccontextmanager
async def cluster(
    *,
    target: str = "reference",
    target_options: Mapping[str, str] | None = None,
    tracing: bool = True,
    through_links: bool = True,
    partitions: int = PARTITIONS,
    properties: Mapping[str, object] | None = None,
) -> AsyncIterator[Cluster]:
    """Start a cluster, create the topic, stop the cluster at the end. ``properties`` go to every broker."""
    with tempfile.TemporaryDirectory(prefix="nemesis-bench-") as directory:
        config = ClusterConfig(
            broker_count=BROKERS,
            client_count=1,
            run_directory=Path(directory),
            broker_properties={
                "min.insync.replicas": MIN_INSYNC_REPLICAS,
                **(properties or {}),
            },
            target=target,
            target_options=target_options or {},
            tracing=tracing,
        )
        config.chosen_target.make_ready(print)
        runtime = LocalRuntime(config) if through_links else LocalRuntime(config, DirectNodes)
        await runtime.lifecycle.start()
        try:
            bootstrap = (
                addresses_of(runtime.cluster)
                if through_links
                else [runtime.cluster.direct_address(broker) for broker in runtime.cluster.brokers]
            )
            running = Cluster(runtime, bootstrap, config.run_directory.resolve(), partitions)
            async with asyncio.timeout(READY_TIMEOUT_S):
                await running.create_topic()
            yield running
        finally:
            await runtime.lifecycle.stop()
