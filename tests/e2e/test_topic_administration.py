"""Topics are created, grown, deleted and created again by confluent-kafka's AdminClient, on a real cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from nemesis.runtimes.local import LocalRuntime
from tests.e2e.confluent_messages import records as without_error
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

DEADLINE_S = 30.0
PROPERTIES = {
    "min.insync.replicas": 2,
    "auto.create.topics.enable": True,
    "log.segment.delete.delay.ms": 500,
}


class Cluster(LocalCluster):
    """Three brokers, a client that administers them, and their files."""

    def __init__(self, runtime: LocalRuntime, directory: Path, runner: asyncio.Runner) -> None:
        super().__init__(runtime, directory, runner)
        self._each = [AdminClient({"bootstrap.servers": str(each)}) for each in self.addresses]

    def create(self, topic: NewTopic, **options: Any) -> None:
        created = self.admin.create_topics([topic], operation_timeout=DEADLINE_S, **options)
        created[topic.topic].result(DEADLINE_S)

    def grow(self, topic: NewPartitions, **options: Any) -> None:
        grown = self.admin.create_partitions([topic], operation_timeout=DEADLINE_S, **options)
        grown[topic.topic].result(DEADLINE_S)

    def delete(self, topic: str) -> None:
        deleted = self.admin.delete_topics([topic], operation_timeout=DEADLINE_S)
        deleted[topic].result(DEADLINE_S)

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """By partition; empty when nobody knows the topic."""
        topics = self.admin.list_topics(timeout=DEADLINE_S).topics
        if topic not in topics:
            return {}
        return {p: list(partition.replicas) for p, partition in topics[topic].partitions.items()}

    def is_known(self, topic: str, partitions: int) -> bool:
        """Whether every broker tells of that many partitions with leaders; librdkafka asks any of them."""
        known = [admin.list_topics(timeout=DEADLINE_S).topics.get(topic) for admin in self._each]
        leaders = [
            [partition.leader > 0 for partition in metadata.partitions.values()] if metadata else []
            for metadata in known
        ]
        return leaders == [[True] * partitions] * len(self._each)

    def produce(self, topic: str, partition: int, *values: str) -> None:
        failures: list[object] = []
        producer = Producer(self.client | {"acks": "all"})
        for value in values:
            producer.produce(
                topic,
                value=value,
                partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert producer.flush(DEADLINE_S) == 0
        assert failures == []

    def consume(self, topic: str, partition: int, count: int) -> list[str]:
        consumer = Consumer(
            self.client
            | {"group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        )
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            values: list[str] = []
            deadline = time.monotonic() + DEADLINE_S
            while len(values) < count and time.monotonic() < deadline:
                messages = without_error(consumer.consume(count, timeout=1.0))
                values.extend(message.value().decode() for message in messages)
            return values
        finally:
            consumer.close()

    def delete_records(self, topic: str, offset: int) -> int:
        """Delete those of partition 0 before the offset; return where it begins on all replicas."""
        doomed = TopicPartition(topic, 0, offset)
        (answer,) = self.admin.delete_records([doomed], operation_timeout=DEADLINE_S).values()
        return int(answer.result(DEADLINE_S).low_watermark)

    def directories(self, topic: str) -> list[str]:
        """What brokers keep of the topic, deleted logs included until their files are removed."""
        return sorted(path.name for path in self.directory.glob(f"data/*/{topic}-[0-9]*"))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster, tmp_path_factory.mktemp("topic-administration"), PROPERTIES) as cluster:
        yield cluster


def test_a_topic_is_validated_without_being_created(cluster: Cluster) -> None:
    cluster.create(NewTopic("valid", 3, 3), validate_only=True)
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        cluster.create(NewTopic("valid", 3, 4), validate_only=True)
    assert cluster.replicas("valid") == {}


def test_a_topic_has_the_replicas_that_were_asked_for(cluster: Cluster) -> None:
    assignment = [[2, 1], [3, 2]]
    cluster.create(NewTopic("placed", 2, replica_assignment=assignment))
    assert cluster.replicas("placed") == {0: [2, 1], 1: [3, 2]}
    with pytest.raises(KafkaException, match="INVALID_REPLICA_ASSIGNMENT"):
        cluster.create(NewTopic("misplaced", 1, replica_assignment=[[2, 9]]))


def test_a_topic_gets_more_partitions(cluster: Cluster) -> None:
    cluster.create(NewTopic("grown", 1, 3))
    until(lambda: cluster.is_known("grown", 1))
    cluster.produce("grown", 0, "before")

    cluster.grow(NewPartitions("grown", 2, replica_assignment=[[3, 1, 2]]), validate_only=True)
    assert list(cluster.replicas("grown")) == [0]
    cluster.grow(NewPartitions("grown", 2, replica_assignment=[[3, 1, 2]]))
    cluster.grow(NewPartitions("grown", 4))

    until(lambda: cluster.is_known("grown", 4))
    assert cluster.replicas("grown")[1] == [3, 1, 2]
    cluster.produce("grown", 3, "after")
    assert cluster.consume("grown", 3, 1) == ["after"]
    assert cluster.consume("grown", 0, 1) == ["before"]


@pytest.mark.parametrize(
    ("partitions", "error"),
    [
        (NewPartitions("short", 1), "INVALID_PARTITIONS"),
        (NewPartitions("short", 2), "INVALID_PARTITIONS"),
        (NewPartitions("short", 3, replica_assignment=[[1, 2]]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewPartitions("short", 3, replica_assignment=[[1, 2, 9]]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewPartitions("absent", 3), "UNKNOWN_TOPIC_OR_PART"),
    ],
)
def test_partitions_that_cannot_be_are_refused(
    cluster: Cluster, partitions: NewPartitions, error: str
) -> None:
    if not cluster.replicas("short"):
        cluster.create(NewTopic("short", 2, 3))
    with pytest.raises(KafkaException, match=error):
        cluster.grow(partitions)
    assert list(cluster.replicas("short")) == [0, 1]


def test_a_deleted_topic_is_gone_and_its_name_is_free(cluster: Cluster) -> None:
    for incarnation in ("first", "second", "third"):
        cluster.create(NewTopic("mortal", 2, 3))
        until(lambda: cluster.is_known("mortal", 2))
        values = [f"{incarnation}-{number}" for number in range(20)]
        cluster.produce("mortal", 1, *values)
        assert cluster.consume("mortal", 1, len(values)) == values

        cluster.delete("mortal")

        until(lambda: cluster.directories("mortal") == [])
        until(lambda: cluster.is_known("mortal", 0))
        # Its name is free as soon as ZooKeeper has nothing of it any more.
        until(lambda: can_be_created(cluster, "mortal"))


def can_be_created(cluster: Cluster, topic: str) -> bool:
    try:
        cluster.create(NewTopic(topic, 1, 1), validate_only=True)
    except KafkaException as error:
        if "TOPIC_ALREADY_EXISTS" not in str(error):
            raise
        return False
    return True


def test_deleted_records_are_gone_for_everybody_and_the_rest_stays(cluster: Cluster) -> None:
    cluster.create(NewTopic("shortened", 1, 3))
    until(lambda: cluster.is_known("shortened", 1))
    values = [str(number) for number in range(30)]
    cluster.produce("shortened", 0, *values)

    assert cluster.delete_records("shortened", 12) == 12

    assert cluster.consume("shortened", 0, 18) == values[12:]
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        cluster.delete_records("shortened", 31)
    assert cluster.delete_records("shortened", 5) == 12, "what is gone does not come back"
    assert cluster.delete_records("shortened", OFFSET_END) == 30
    cluster.produce("shortened", 0, "next")
    assert cluster.consume("shortened", 0, 1) == ["next"]


def test_a_topic_that_is_absent_cannot_be_deleted(cluster: Cluster) -> None:
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        cluster.delete("never-was")


@pytest.mark.parametrize("attempt", range(3))
def test_a_topic_that_is_produced_to_comes_into_being(cluster: Cluster, attempt: int) -> None:
    """Whichever broker librdkafka asks for metadata, controller or not."""
    topic = f"made-by-producing-{attempt}"
    producer = Producer(cluster.client | {"allow.auto.create.topics": True})
    producer.produce(topic, value="first", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    assert cluster.consume(topic, 0, 1) == ["first"]


def test_a_consumer_does_not_bring_a_topic_into_being(cluster: Cluster) -> None:
    consumer = Consumer(cluster.client | {"group.id": "none", "allow.auto.create.topics": False})
    try:
        asked = consumer.list_topics("never-made", timeout=DEADLINE_S).topics["never-made"]
        assert asked.error.name() == "UNKNOWN_TOPIC_OR_PART"
    finally:
        consumer.close()
    assert cluster.is_known("never-made", 0)
