"""Consumer groups and transactions are not built: a client that asks for them gets an error within seconds."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic

from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
aiokafka = pytest.importorskip("aiokafka", reason=MISSING)
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

TOPIC = "greetings"
WITHIN_S = 10.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("groups"), {}, brokers=1) as cluster:
        topic = NewTopic(TOPIC, num_partitions=1, replication_factor=1)
        cluster.admin.create_topics([topic])[TOPIC].result(WITHIN_S)
        yield cluster


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_a_group_of_kcat_ends_with_an_error(cluster: LocalCluster) -> None:
    done = subprocess.run(
        ["kcat", "-b", cluster.bootstrap, "-G", "a-group", TOPIC],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 1
    assert "groups are not built" in done.stderr


def test_a_group_of_confluent_kafka_gets_an_error(cluster: LocalCluster) -> None:
    consumer = Consumer(cluster.client | {"group.id": "a-group"})
    try:
        consumer.subscribe([TOPIC])
        message = consumer.poll(WITHIN_S)
        assert message is not None
        assert message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        assert "groups are not built" in str(message.error())
    finally:
        consumer.close()


def test_a_transaction_of_confluent_kafka_ends_with_a_fatal_error(cluster: LocalCluster) -> None:
    producer = Producer(cluster.client | {"transactional.id": "a-transaction"})
    with pytest.raises(KafkaException, match="transactions are not built") as raised:
        producer.init_transactions(WITHIN_S)
    assert raised.value.args[0].fatal()


def test_a_group_of_kafka_python_raises(cluster: LocalCluster) -> None:
    consumer = kafka.KafkaConsumer(
        TOPIC, bootstrap_servers=cluster.bootstrap.split(","), group_id="a-group"
    )
    began = time.monotonic()
    try:
        with pytest.raises(kafka.errors.GroupAuthorizationFailedError):
            consumer.poll(timeout_ms=int(WITHIN_S * 1000))
    finally:
        consumer.close()
    assert time.monotonic() - began < WITHIN_S


def test_a_transaction_of_kafka_python_raises(cluster: LocalCluster) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id="a-transaction"
    )
    began = time.monotonic()
    try:
        with pytest.raises(kafka.errors.KafkaError, match="TransactionalIdAuthorizationFailed"):
            producer.init_transactions()
    finally:
        producer.close(timeout=1)
    assert time.monotonic() - began < WITHIN_S


def test_a_group_of_aiokafka_raises(cluster: LocalCluster) -> None:
    async def scene() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, bootstrap_servers=cluster.bootstrap, group_id="a-group"
        )
        try:
            async with asyncio.timeout(WITHIN_S):
                with pytest.raises(aiokafka.errors.GroupAuthorizationFailedError):
                    await consumer.start()
        finally:
            await consumer.stop()

    asyncio.run(scene())


def test_a_transaction_of_aiokafka_raises(cluster: LocalCluster) -> None:
    async def scene() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id="a-transaction"
        )
        try:
            async with asyncio.timeout(WITHIN_S):
                with pytest.raises(aiokafka.errors.TransactionalIdAuthorizationFailed):
                    await producer.start()
        finally:
            await producer.stop()

    asyncio.run(scene())
