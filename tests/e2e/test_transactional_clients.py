"""Transactional clients of other makers, and ``kafka-transactions``, work against the reference as they are."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.e2e.kafka_tools import needs_kafka_tools, run_tool
from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
aiokafka = pytest.importorskip("aiokafka", reason=MISSING)
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

PARTITIONS = 2
WITHIN_S = 40.0
PROPERTIES = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "min.insync.replicas": 2,
}
TRANSACTIONS = ((b"committed", True), (b"aborted", False), (b"committed too", True))
COMMITTED = [b"committed"] * PARTITIONS + [b"committed too"] * PARTITIONS
AN_HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("clients"), PROPERTIES) as cluster:
        topics = [NewTopic(name, PARTITIONS, 3) for name in ("k", "a", "tools")]
        for created in cluster.admin.create_topics(topics).values():
            created.result(WITHIN_S)
        yield cluster


def servers(cluster: LocalCluster) -> str:
    return str(cluster.client["bootstrap.servers"])


def read_committed(cluster: LocalCluster, topic: str) -> list[bytes]:
    """Read with kafka-python from the start, until nothing has come for five seconds."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers(cluster).split(","),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=5_000,
    )
    consumer.assign([kafka.TopicPartition(topic, number) for number in range(PARTITIONS)])
    values = [record.value for record in consumer]
    consumer.close()
    return sorted(values)


def test_kafka_python_commits_and_aborts(cluster: LocalCluster) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers(cluster).split(","), transactional_id="kafka-python", acks="all"
    )
    producer.init_transactions()
    for value, is_commit in TRANSACTIONS:
        producer.begin_transaction()
        for number in range(PARTITIONS):
            producer.send("k", value, partition=number)
        producer.flush()
        offsets = {kafka.TopicPartition("k", 0): kafka.OffsetAndMetadata(len(value), "", -1)}
        producer.send_offsets_to_transaction(offsets, "kafka-python")
        if is_commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    assert read_committed(cluster, "k") == COMMITTED
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers(cluster).split(","), group_id="kafka-python"
    )
    assert consumer.committed(kafka.TopicPartition("k", 0)) == len(b"committed too")
    consumer.close()


def test_aiokafka_commits_and_aborts(cluster: LocalCluster) -> None:
    async def produce() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers(cluster), transactional_id="aiokafka"
        )
        await producer.start()
        for value, is_commit in TRANSACTIONS:
            await producer.begin_transaction()
            for number in range(PARTITIONS):
                await producer.send_and_wait("a", value, partition=number)
            offsets = {aiokafka.TopicPartition("a", 0): len(value)}
            await producer.send_offsets_to_transaction(offsets, "aiokafka")
            if is_commit:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        await producer.stop()

    async def consume() -> tuple[list[bytes], int]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers(cluster),
            group_id="aiokafka",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        await consumer.start()
        partitions = [aiokafka.TopicPartition("a", number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        committed = await consumer.committed(partitions[0])
        await consumer.seek_to_beginning(*partitions)
        values: list[bytes] = []
        deadline = time.monotonic() + WITHIN_S
        while len(values) < len(COMMITTED) and time.monotonic() < deadline:
            for records in (await consumer.getmany(timeout_ms=1_000)).values():
                values += [record.value for record in records]
        await consumer.stop()
        return sorted(values), committed or 0

    asyncio.run(produce())
    assert asyncio.run(consume()) == (COMMITTED, len(b"committed too"))


def transactions(cluster: LocalCluster, *arguments: str) -> list[list[str]]:
    """Return the fields of each line that ``kafka-transactions`` prints."""
    text = run_tool(
        "org.apache.kafka.tools.TransactionsCommand",
        *("--bootstrap-server", servers(cluster), *arguments),
    )
    return [line.split() for line in text.splitlines() if line and "log4j" not in line]


@needs_kafka_tools
def test_kafka_transactions_lists_describes_and_aborts(cluster: LocalCluster) -> None:
    producer = Producer(cluster.client | {"transactional.id": "left"})
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    long_ago_ms = round(time.time() * 1000) - AN_HOUR_MS
    producer.produce("tools", "left open", partition=0, timestamp=long_ago_ms)
    producer.flush(WITHIN_S)
    (listed,) = [line for line in transactions(cluster, "list") if line[0] == "left"]
    assert listed[3] == "Ongoing"
    header, described = transactions(cluster, "describe", "--transactional-id", "left")
    fields = dict(zip(header, described, strict=True))
    assert (fields["TransactionState"], fields["TopicPartitions"]) == ("Ongoing", "tools-0")
    partition = ("--topic", "tools", "--partition", "0")
    header, written = transactions(cluster, "describe-producers", *partition)
    start = dict(zip(header, written, strict=True))["CurrentTransactionStartOffset"]
    assert start == "0"
    hanging = transactions(cluster, "find-hanging", *partition)
    assert len(hanging) == 1, "its coordinator knows the transaction"
    transactions(cluster, "abort", *partition, "--start-offset", start)
    header, written = transactions(cluster, "describe-producers", *partition)
    assert dict(zip(header, written, strict=True))["CurrentTransactionStartOffset"] == "None"
