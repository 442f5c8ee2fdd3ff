"""Replicas are moved in a real cluster while confluent-kafka, which knows nothing of us, produces and looks on.

librdkafka's admin client cannot ask for reassignments, so a client of ours does, over the same sockets.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from nemesis.reference.model import TopicPartition as Partition
from nemesis.reference.zk import zk_data
from nemesis.runtimes.local import LocalRuntime
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import BrokerError
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

COUNT = 50
DEADLINE_S = 30.0


class Cluster(LocalCluster):
    """Three brokers, those who ask, and where the brokers' logs are."""

    def __init__(self, runtime: LocalRuntime, directory: Path, runner: asyncio.Runner) -> None:
        super().__init__(runtime, directory, runner)
        self._asker = KafkaAdmin(
            [(address.host, address.port) for address in self.addresses],
            client_id="asker",
            source_host="127.0.0.1",
            rng=Random(1),
        )

    def create_topic(self, name: str, *replicas: int) -> None:
        """One partition, with these replicas."""
        topic = NewTopic(name, num_partitions=1, replica_assignment=[list(replicas)])
        self.admin.create_topics([topic])[name].result(DEADLINE_S)
        self.until_placed(name, *replicas)

    def reassign(self, name: str, target: tuple[int, ...] | None) -> None:
        """Ask the controller; raises BrokerError."""

        async def ask() -> None:
            try:
                while not await self._asker.refresh_metadata():
                    await asyncio.sleep(0.1)
                await self._asker.reassign(name, 0, target, timeout_s=DEADLINE_S)
            finally:
                self._asker.close()
                await asyncio.sleep(0)  # for the transport to be gone

        self.runner.run(ask())

    def until_placed(self, name: str, *replicas: int) -> None:
        """Wait until clients see exactly these replicas, all in sync, and no other broker has files of it."""

        def is_placed() -> bool:
            metadata = self.admin.list_topics(name, timeout=DEADLINE_S).topics[name]
            partition = metadata.partitions.get(0)
            return (
                partition is not None
                and partition.replicas == list(replicas)
                and set(partition.isrs) == set(replicas)
                and partition.leader in replicas
            )

        until(is_placed)
        until(lambda: self._holders(name) == set(replicas))

    def _holders(self, name: str) -> set[int]:
        """The brokers that have a directory of the partition."""
        return {
            int(part.removeprefix("broker-"))
            for path in self.directory.glob(f"data/*/{name}-0")
            for part in path.parts
            if part.startswith("broker-")
        }

    def produce(self, name: str, values: range) -> None:
        failures: list[object] = []
        producer = Producer(self.client | {"acks": "all"})
        for value in values:
            producer.produce(
                name,
                str(value),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, name: str, count: int) -> list[int]:
        consumer = Consumer(self.client | {"group.id": "unused", "enable.auto.commit": False})
        consumer.assign([TopicPartition(name, 0, 0)])
        values: list[int] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            value = None if message is None or message.error() else message.value()
            if value is not None:
                values.append(int(value))
        consumer.close()
        return values


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(
        Cluster, tmp_path_factory.mktemp("reassignment"), {"min.insync.replicas": 1}
    ) as cluster:
        yield cluster


def test_what_was_produced_moves_with_its_partition(cluster: Cluster) -> None:
    cluster.create_topic("moved", 1, 2)
    cluster.produce("moved", range(COUNT))
    cluster.reassign("moved", (3, 2))
    cluster.until_placed("moved", 3, 2)
    cluster.produce("moved", range(COUNT, 2 * COUNT))
    cluster.reassign("moved", (1,))
    cluster.until_placed("moved", 1)
    assert cluster.consume("moved", 2 * COUNT) == list(range(2 * COUNT))


def test_what_is_wrong_is_refused_with_kafkas_code(cluster: Cluster) -> None:
    cluster.create_topic("stays", 1, 2)
    for name, target, code in (
        ("stays", (2, 2), "INVALID_REPLICA_ASSIGNMENT"),
        ("stays", (1, 9), "INVALID_REPLICA_ASSIGNMENT"),
        ("stays", None, "NO_REASSIGNMENT_IN_PROGRESS"),
        ("absent", (1, 2), "UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        with pytest.raises(BrokerError) as refused:
            cluster.reassign(name, target)
        assert refused.value.name == code
    cluster.until_placed("stays", 1, 2)


def test_the_old_way_through_zookeeper_works_too(cluster: Cluster) -> None:
    cluster.create_topic("old-way", 1, 2)
    cluster.produce("old-way", range(COUNT))
    zookeeper = KazooClient(cluster.zookeeper)
    zookeeper.start()
    try:
        asked = zk_data.encode_partition_reassignment({Partition("old-way", 0): (2, 3)})
        zookeeper.create(zk_data.REASSIGN_PARTITIONS, asked)
        until(lambda: zookeeper.exists(zk_data.REASSIGN_PARTITIONS) is None)
    finally:
        zookeeper.stop()
        zookeeper.close()
    cluster.until_placed("old-way", 2, 3)
    assert cluster.consume("old-way", COUNT) == list(range(COUNT))
