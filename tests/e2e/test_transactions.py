"""A transactional producer and a read-committed consumer of confluent-kafka work against the reference."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from nemesis.reference.coordinator.key_partitions import partition_for
from tests.e2e.kafka_tools import needs_kafka_tools, run_tool
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = pytest.mark.e2e

TOPIC = "t"
PARTITIONS = 2
STATE_PARTITIONS = 3
WITHIN_S = 40.0
PROPERTIES = {
    "transaction.state.log.num.partitions": STATE_PARTITIONS,
    "offsets.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "min.insync.replicas": 2,
}
MEMBER = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("transactions"), PROPERTIES) as cluster:
        cluster.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(WITHIN_S)
        yield cluster


def transactional(cluster: LocalCluster, transactional_id: str) -> Producer:
    producer = Producer(cluster.client | {"transactional.id": transactional_id})
    producer.init_transactions(WITHIN_S)
    return producer


def write(producer: Producer, value: str) -> None:
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, value, partition=partition)
    producer.flush(WITHIN_S)


def read(cluster: LocalCluster, isolation_level: str, count: int) -> list[str]:
    """Read from the start until that many records have come, and for a second more."""
    consumer = Consumer(cluster.client | {"group.id": "unused", "isolation.level": isolation_level})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    values: list[str] = []
    deadline = time.monotonic() + WITHIN_S
    while (message := consumer.poll(1)) is not None or len(values) < count:
        assert time.monotonic() < deadline, f"expected {count} records, got {values}"
        if message is not None and message.error() is None:
            values.append((message.value() or b"").decode())
    consumer.close()
    return sorted(values)


def test_what_is_committed_is_read_and_what_is_aborted_is_not(cluster: LocalCluster) -> None:
    producer = transactional(cluster, "writer")
    write(producer, "committed")
    producer.commit_transaction(WITHIN_S)
    write(producer, "aborted")
    producer.abort_transaction(WITHIN_S)
    write(producer, "committed too")
    producer.commit_transaction(WITHIN_S)
    write(producer, "open")
    committed = ["committed"] * 2 + ["committed too"] * 2
    assert read(cluster, "read_committed", 4) == committed
    everything = sorted([*committed, *["aborted"] * 2, *["open"] * 2])
    assert read(cluster, "read_uncommitted", 8) == everything
    latter = transactional(cluster, "writer")
    with pytest.raises(KafkaException):
        producer.commit_transaction(WITHIN_S)
    write(latter, "of the latter")
    latter.commit_transaction(WITHIN_S)
    assert read(cluster, "read_committed", 6) == sorted([*committed, *["of the latter"] * 2])


def committed_offset(consumer: Consumer) -> int:
    (position,) = consumer.committed([TopicPartition(TOPIC, 0)], WITHIN_S)
    return int(position.offset)


def test_offsets_are_committed_with_the_transaction(cluster: LocalCluster) -> None:
    """A member of a group sends its positions in transactions: what is aborted is as if it had not been sent."""
    writer = Producer(cluster.client)
    writer.produce(TOPIC, "input", partition=0)
    writer.flush(WITHIN_S)
    consumer = Consumer(cluster.client | {"group.id": "transforming", **MEMBER})
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + WITHIN_S
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the group has no generation"
        consumer.poll(0.5)
    producer = transactional(cluster, "transformer")
    for offset, is_commit, expected in ((1, True, 1), (2, False, 1), (3, True, 3)):
        producer.begin_transaction()
        producer.produce(TOPIC, "output", partition=1)
        positions = [TopicPartition(TOPIC, 0, offset)]
        producer.send_offsets_to_transaction(
            positions, consumer.consumer_group_metadata(), WITHIN_S
        )
        if is_commit:
            producer.commit_transaction(WITHIN_S)
        else:
            producer.abort_transaction(WITHIN_S)
        assert committed_offset(consumer) == expected
    metadata = consumer.consumer_group_metadata()
    consumer.close()
    producer.begin_transaction()
    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, 4)], metadata, WITHIN_S)
    producer.abort_transaction(WITHIN_S)
    reader = Consumer(cluster.client | {"group.id": "transforming"})
    assert committed_offset(reader) == 3
    reader.close()


@needs_kafka_tools
def test_kafka_reads_the_transaction_log(cluster: LocalCluster) -> None:
    producer = transactional(cluster, "dumped")
    write(producer, "dumped")
    producer.commit_transaction(WITHIN_S)
    partition = partition_for("dumped", STATE_PARTITIONS)
    segments = sorted(Path(cluster.directory).rglob(f"__transaction_state-{partition}/*.log"))
    assert segments
    arguments = ("--transaction-log-decoder", "--files", str(segments[0]))
    text = run_tool("kafka.tools.DumpLogSegments", *arguments)
    assert "transaction_metadata::transactionalId=dumped" in text
    assert "state=Ongoing" in text
    assert "state=PrepareCommit" in text
