"""Transactions are not built: a client that asks for one gets an error within seconds."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from tests.e2e.local_cluster import LocalCluster, running

MISSING = "a client of the dev extra is missing: run .ci/install --tests"
aiokafka = pytest.importorskip("aiokafka", reason=MISSING)
with warnings.catch_warnings():  # it reads its schemas by a call that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    kafka = pytest.importorskip("kafka", reason=MISSING)

pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka")]

WITHIN_S = 10.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(LocalCluster, tmp_path_factory.mktemp("transactions"), {}, brokers=1) as cluster:
        yield cluster


def test_a_transaction_of_confluent_kafka_ends_with_a_fatal_error(cluster: LocalCluster) -> None:
    producer = Producer(cluster.client | {"transactional.id": "a-transaction"})
    with pytest.raises(KafkaException, match="transactions are not built") as raised:
        producer.init_transactions(WITHIN_S)
    assert raised.value.args[0].fatal()


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
