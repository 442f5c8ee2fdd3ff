"""Consumers of four client libraries, and Kafka's own tools, work in groups of the reference without changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from nemesis.reference.coordinator.key_partitions import partition_for
from tests.e2e.kafka_tools import needs_kafka_tools, run_tool, running_tool
from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
aiokafka = pytest.importorskip("aiokafka", reason=MISSING)
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

PARTITIONS = 4
RECORDS = 40
WITHIN_S = 40.0
OFFSETS_PARTITIONS = 5
PROPERTIES = {
    "group.initial.rebalance.delay.ms": 500,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
    "min.insync.replicas": 2,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("groups"), PROPERTIES) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: LocalCluster, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, with records in each partition."""
    name = str(request.node.name).replace("[", "-").replace("]", "")[-60:]
    created = cluster.admin.create_topics([NewTopic(name, PARTITIONS, 3)])[name]
    created.result(WITHIN_S)
    produce(cluster, name, range(RECORDS))
    return name


def produce(cluster: LocalCluster, topic: str, numbers: Iterable[int]) -> None:
    """Write these numbers, to each partition in turn."""
    producer = Producer(cluster.client | {"acks": "all"})
    for number in numbers:
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(WITHIN_S) == 0


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


@contextlib.contextmanager
def confluent(cluster: LocalCluster, group: str, topic: str, **settings: Any) -> Iterator[Consumer]:
    consumer = Consumer(
        cluster.client
        | {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )
    consumer.subscribe([topic])
    try:
        yield consumer
    finally:
        consumer.close()


def read(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []

    def is_done() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) >= count

    until(is_done)
    return values


def committed(consumer: Consumer, topic: str) -> list[int]:
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    return [item.offset for item in consumer.committed(partitions, timeout=WITHIN_S)]


def owned(consumer: Consumer) -> set[int]:
    consumer.poll(0.1)
    return {item.partition for item in consumer.assignment()}


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_consumers_of_librdkafka_share_the_partitions(
    cluster: LocalCluster, topic: str, strategy: str
) -> None:
    settings = {"partition_assignment_strategy": strategy}
    everything = set(range(PARTITIONS))
    with confluent(cluster, topic, topic, **settings) as first:
        assert sorted(map(int, read(first, RECORDS))) == list(range(RECORDS))
        first.commit(asynchronous=False)
        with confluent(cluster, topic, topic, **settings) as second:

            def is_shared() -> bool:
                halves = owned(first), owned(second)
                return halves[0] | halves[1] == everything and not halves[0] & halves[1]

            until(lambda: is_shared() and len(owned(first)) == PARTITIONS // 2)
        until(lambda: owned(first) == everything)
        assert committed(first, topic) == [RECORDS // PARTITIONS] * PARTITIONS


def test_a_group_goes_on_where_it_ended(cluster: LocalCluster, topic: str) -> None:
    with confluent(cluster, topic, topic) as consumer:
        read(consumer, RECORDS)
        consumer.commit(asynchronous=False)
    producer = Producer(cluster.client)
    producer.produce(topic, b"new", partition=1)
    producer.flush(WITHIN_S)
    with confluent(cluster, topic, topic) as consumer:
        assert read(consumer, 1) == [b"new"]


def test_a_static_member_comes_back_without_a_rebalance(cluster: LocalCluster, topic: str) -> None:
    static = {"group_instance_id": "i-1", "session_timeout_ms": 30_000}
    with confluent(cluster, topic, topic) as other:
        with confluent(cluster, topic, topic, **static) as consumer:
            until(lambda: len(owned(consumer)) == len(owned(other)) == PARTITIONS // 2)
            former = owned(consumer), owned(other)
        with confluent(cluster, topic, topic, **static) as consumer:
            until(lambda: bool(owned(consumer)))
            assert (owned(consumer), owned(other)) == former


def test_a_member_that_is_fenced_learns_so(cluster: LocalCluster, topic: str) -> None:
    static = {"group_instance_id": "i-1"}
    with confluent(cluster, topic, topic, **static) as first:
        until(lambda: len(owned(first)) == PARTITIONS)
        with confluent(cluster, topic, topic, **static) as second:
            until(lambda: len(owned(second)) == PARTITIONS)

            def is_fenced() -> bool:
                try:
                    message = first.poll(0.2)
                except KafkaException as raised:
                    return "FENCED" in str(raised).upper()
                return message is not None and "FENCED" in str(message.error()).upper()

            until(is_fenced)


def test_the_group_outlives_its_coordinator(cluster: LocalCluster, topic: str) -> None:
    with confluent(cluster, topic, topic) as consumer:
        read(consumer, RECORDS)
        consumer.commit(asynchronous=False)
        partition = partition_for(topic, OFFSETS_PARTITIONS)
        metadata = cluster.admin.list_topics(timeout=WITHIN_S).topics["__consumer_offsets"]
        victim = f"broker-{metadata.partitions[partition].leader}"
        cluster.runner.run(cluster.runtime.processes.kill(victim))
        try:
            producer = Producer(cluster.client)
            producer.produce(topic, b"new", partition=0)
            producer.flush(WITHIN_S)
            assert read(consumer, 1) == [b"new"]
            until(lambda: _commits(consumer))
            expected = RECORDS // PARTITIONS
            assert committed(consumer, topic) == [expected + 1, *[expected] * (PARTITIONS - 1)]
        finally:
            cluster.runner.run(cluster.runtime.processes.restart(victim))
            until(lambda: len(cluster.admin.list_topics(timeout=WITHIN_S).brokers) == 3)


def _commits(consumer: Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        consumer.poll(0.2)
        return False
    return True


@dataclass(frozen=True)
class Kcat:
    """What a kcat has printed so far."""

    values_file: Path
    messages_file: Path

    def values(self) -> list[int]:
        return sorted(map(int, self.values_file.read_text().split()))

    def assigned(self) -> int:
        """Return how many partitions its last rebalance has given it."""
        lines = [
            line for line in self.messages_file.read_text().splitlines() if "assigned:" in line
        ]
        return lines[-1].partition("assigned:")[2].count("[") if lines else 0


@contextlib.contextmanager
def kcat(cluster: LocalCluster, group: str, topic: str, directory: Path) -> Iterator[Kcat]:
    directory.mkdir()
    command = ["kcat", "-b", cluster.bootstrap, "-X", "auto.offset.reset=earliest", "-f", "%s\n"]
    command += ["-u", "-G", group, topic]
    printed = Kcat(directory / "values", directory / "messages")
    with printed.values_file.open("wb") as values, printed.messages_file.open("wb") as messages:
        process = subprocess.Popen(command, stdout=values, stderr=messages)
        try:
            yield printed
        finally:
            process.terminate()
            process.wait(WITHIN_S)


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_a_group_of_kcat_reads_everything_once(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    with kcat(cluster, topic, topic, tmp_path / "first") as first:
        until(lambda: first.values() == list(range(RECORDS)))
        assert first.assigned() == PARTITIONS
        with kcat(cluster, topic, topic, tmp_path / "second") as second:
            until(lambda: (first.assigned(), second.assigned()) == (2, 2))
            produce(cluster, topic, range(RECORDS, 2 * RECORDS))
            until(lambda: bool(second.values()))
            both = list(range(2 * RECORDS))
            until(lambda: sorted(first.values() + second.values()) == both)
        until(lambda: first.assigned() == PARTITIONS)
    with confluent(cluster, topic, topic) as consumer:
        until(lambda: committed(consumer, topic) == [2 * RECORDS // PARTITIONS] * PARTITIONS)


def test_consumers_of_kafka_python_share_the_partitions(cluster: LocalCluster, topic: str) -> None:
    def consumer() -> Any:
        return kafka.KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap.split(","),
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )

    first = consumer()
    values: list[int] = []

    def poll(one_of: Any) -> int:
        for records in one_of.poll(timeout_ms=200).values():
            values.extend(int(record.value) for record in records)
        return len(one_of.assignment())

    try:
        until(lambda: poll(first) == PARTITIONS and len(values) == RECORDS)
        assert sorted(values) == list(range(RECORDS))
        first.commit()
        second = consumer()
        try:
            until(lambda: (poll(first), poll(second)) == (2, 2))
        finally:
            second.close()
        until(lambda: poll(first) == PARTITIONS)
        assert first.committed(kafka.TopicPartition(topic, 0)) == RECORDS // PARTITIONS
    finally:
        first.close()


def test_a_consumer_of_aiokafka_goes_on_where_another_ended(
    cluster: LocalCluster, topic: str
) -> None:
    async def read_some(count: int) -> list[int]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            async with asyncio.timeout(WITHIN_S):
                values = [int((await consumer.getone()).value) for _ in range(count)]
            await consumer.commit()
        finally:
            await consumer.stop()
        return values

    first = asyncio.run(read_some(RECORDS // 2))
    second = asyncio.run(read_some(RECORDS - RECORDS // 2))
    assert sorted(first + second) == list(range(RECORDS))


def test_consumers_of_aiokafka_share_the_partitions(cluster: LocalCluster, topic: str) -> None:
    async def consumer() -> Any:
        started = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=500,
            session_timeout_ms=6000,
        )
        await started.start()
        return started

    async def owning(count: int, *consumers: Any) -> None:
        async with asyncio.timeout(WITHIN_S):
            while [len(item.assignment()) for item in consumers] != [count] * len(consumers):
                await asyncio.gather(*(item.getmany(timeout_ms=100) for item in consumers))

    async def scenario() -> None:
        first = await consumer()
        try:
            await owning(PARTITIONS, first)
            second = await consumer()
            try:
                await owning(PARTITIONS // 2, first, second)
                assert not first.assignment() & second.assignment()
            finally:
                await second.stop()
            await owning(PARTITIONS, first)
        finally:
            await first.stop()

    asyncio.run(scenario())


@needs_kafka_tools
def test_kafkas_consumers_share_the_partitions(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """kafka-verifiable-consumer and kafka-console-consumer, in one group."""
    events, values = tmp_path / "events", tmp_path / "values"
    group = ["--bootstrap-server", cluster.bootstrap, "--topic", topic]

    def verified(name: str) -> list[Any]:
        lines = [line for line in events.read_text().splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event["name"] == name]

    def assigned() -> int:
        return len((verified("partitions_assigned") or [{"partitions": ()}])[-1]["partitions"])

    def consumed() -> int:
        return sum(event["count"] for event in verified("records_consumed"))

    def printed() -> int:
        return sum(map(str.isdecimal, values.read_text().splitlines()))

    verifiable = ["org.apache.kafka.tools.VerifiableConsumer", *group, "--group-id", topic]
    console = ["org.apache.kafka.tools.consumer.ConsoleConsumer", *group, "--group", topic]
    with running_tool(*verifiable, "--reset-policy", "earliest", output=events):
        until(lambda: consumed() == RECORDS)
        assert assigned() == PARTITIONS
        with running_tool(*console, output=values):
            until(lambda: assigned() == PARTITIONS // 2)
            produce(cluster, topic, range(PARTITIONS))
            until(lambda: consumed() == RECORDS + PARTITIONS // 2)
            until(lambda: printed() == PARTITIONS // 2)
        until(lambda: assigned() == PARTITIONS)
    assert verified("shutdown_complete")
    assert all(event["success"] for event in verified("offsets_committed"))
    with confluent(cluster, topic, topic) as consumer:
        expected = RECORDS // PARTITIONS + 1
        until(lambda: committed(consumer, topic) == [expected] * PARTITIONS)


@needs_kafka_tools
def test_kafkas_tools_describe_reset_and_delete_a_group(cluster: LocalCluster, topic: str) -> None:
    with confluent(cluster, topic, topic) as consumer:
        read(consumer, RECORDS)
        consumer.commit(asynchronous=False)
        described = groups_command(cluster, "--describe", "--group", topic)
        rows = re.findall(
            rf"^{topic}\s+{topic}\s+(\d+)\s+(\d+)\s+(\d+)\s+0", described, re.MULTILINE
        )
        assert sorted(rows) == [(str(n), "10", "10") for n in range(PARTITIONS)]
        state = groups_command(cluster, "--describe", "--state", "--group", topic)
        assert "Stable" in state
        assert "range" in state
    listed = groups_command(cluster, "--list", "--state")
    assert re.search(rf"^{topic}\s+.*Empty", listed, re.MULTILINE)
    reset = groups_command(
        cluster, "--reset-offsets", "--to-earliest", "--execute", "--group", topic, "--topic", topic
    )
    assert "Error" not in reset
    with confluent(cluster, topic, topic) as consumer:
        assert committed(consumer, topic) == [0] * PARTITIONS
    until(lambda: "Empty" in groups_command(cluster, "--describe", "--state", "--group", topic))
    deleted = groups_command(cluster, "--delete-offsets", "--group", topic, "--topic", f"{topic}:0")
    assert "successful" in deleted.lower()
    assert "successfully deleted" in groups_command(
        cluster, "--delete", "--group", topic
    ).lower() or (topic not in groups_command(cluster, "--list"))
    assert topic not in groups_command(cluster, "--list").split()


def groups_command(cluster: LocalCluster, *arguments: str) -> str:
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    return run_tool(tool, "--bootstrap-server", cluster.bootstrap, *arguments)


@needs_kafka_tools
def test_kafka_reads_the_records_of_the_offsets_topic(cluster: LocalCluster, topic: str) -> None:
    with confluent(cluster, topic, topic) as consumer:
        read(consumer, RECORDS)
        consumer.commit(asynchronous=False)
    partition = partition_for(topic, OFFSETS_PARTITIONS)
    segments = sorted(Path(cluster.directory).rglob(f"__consumer_offsets-{partition}/*.log"))
    assert segments
    text = run_tool("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(segments[0]))
    assert f'"group":"{topic}","topic":"{topic}","partition":0' in text
    assert '"offset":10' in text
    assert '"protocolType":"consumer"' in text
    assert '"protocol":"range"' in text


def test_the_offsets_topic_is_internal_and_closed(cluster: LocalCluster, topic: str) -> None:
    with confluent(cluster, topic, topic) as consumer:
        until(lambda: bool(owned(consumer)))
    failures: list[str] = []
    producer = Producer(cluster.client | {"message.timeout.ms": 5000})
    producer.produce(
        "__consumer_offsets", b"v", b"k", on_delivery=lambda error, _: failures.append(str(error))
    )
    producer.flush(WITHIN_S)
    assert len(failures) == 1
    assert "INVALID_TOPIC" in failures[0] or "TOPIC_EXCEPTION" in failures[0]
