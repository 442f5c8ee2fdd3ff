"""Kafka's own transactional producer, and its readers of committed records, work against the reference as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.e2e.kafka_tools import needs_kafka_tools, run_tool
from tests.e2e.local_cluster import LocalCluster, running

pytestmark = [pytest.mark.e2e, needs_kafka_tools]

TOOLS: Final = "org.apache.kafka.tools"
PROPERTIES: Final = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "min.insync.replicas": 2,
}
PARTITIONS: Final = 2
RECORDS: Final = 3000
RECORDS_PER_S: Final = 1000
TRANSACTION_MS: Final = 200
COPIED_PER_TRANSACTION: Final = 100
WITHIN_S: Final = 40.0
SILENT_MS: Final = 5_000
"""A reader ends when no record has come for so long."""
VALUES: Final = [str(number) for number in range(RECORDS)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("java"), PROPERTIES) as cluster:
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("written", "input", "output")]
        for created in cluster.admin.create_topics(topics).values():
            created.result(WITHIN_S)
        yield cluster


def write(cluster: LocalCluster, topic: str, *arguments: str) -> None:
    """Write ``VALUES`` with Kafka's performance test of producers."""
    run_tool(
        f"{TOOLS}.ProducerPerformance", "--topic", topic, "--num-records", str(RECORDS),
        "--payload-monotonic", "--throughput", str(RECORDS_PER_S), *arguments,
        "--producer-props", f"bootstrap.servers={cluster.bootstrap}",
    )  # fmt: skip


def read(cluster: LocalCluster, topic: str, isolation_level: str) -> list[str]:
    """Return the values that Kafka's console consumer reads from the start, the smallest number first."""
    printed = run_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", cluster.bootstrap,
        "--topic", topic, "--from-beginning", "--timeout-ms", str(SILENT_MS),
        "--isolation-level", isolation_level,
    )  # fmt: skip
    return sorted((line for line in printed.splitlines() if line.isdecimal()), key=int)


def ends(cluster: LocalCluster, topic: str) -> list[int]:
    """Return the log end offset of each partition, control records included."""
    consumer = Consumer(cluster.client | {"group.id": "ends"})
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    offsets = [consumer.get_watermark_offsets(partition, WITHIN_S) for partition in partitions]
    consumer.close()
    return [high for _, high in offsets]


def test_what_the_performance_test_commits_is_read(cluster: LocalCluster) -> None:
    transactions = ("--transactional-id", "perf", "--transaction-duration-ms", str(TRANSACTION_MS))
    write(cluster, "written", *transactions)
    assert read(cluster, "written", "read_committed") == VALUES
    assert sum(ends(cluster, "written")) - RECORDS > PARTITIONS, "markers of several transactions"


def test_records_are_copied_exactly_once_though_transactions_abort(cluster: LocalCluster) -> None:
    write(cluster, "input")  # without transactions: the copier counts markers as records to copy
    run_tool(
        f"{TOOLS}.TransactionalMessageCopier", "--broker-list", cluster.bootstrap,
        "--input-topic", "input", "--input-partition", "-1", "--output-topic", "output",
        "--consumer-group", "copier", "--transactional-id", "copier",
        "--transaction-size", str(COPIED_PER_TRANSACTION),
        "--enable-random-aborts", "--group-mode", "--use-group-metadata",
    )  # fmt: skip
    assert read(cluster, "output", "read_committed") == VALUES
    assert len(read(cluster, "output", "read_uncommitted")) > RECORDS, "some transactions aborted"
    consumer = Consumer(cluster.client | {"group.id": "copier"})
    partitions = [TopicPartition("input", number) for number in range(PARTITIONS)]
    committed = [partition.offset for partition in consumer.committed(partitions, WITHIN_S)]
    consumer.close()
    assert committed == ends(cluster, "input")
