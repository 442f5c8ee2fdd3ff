"""One reference broker and two of Apache Kafka in a cluster: what either asks of a controller of the other kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.static.primitive import i32Timedelta

from nemesis.interfaces.links import Address
from nemesis.interfaces.unsupported import supported
from nemesis.support.errors import MissingRequirement
from nemesis.targets import TARGETS
from nemesis.workloads.kafka.connection import KafkaConnection
from tests.e2e.command import wait_until
from tests.e2e.local_cluster import LocalCluster, running
from tests.e2e.onlooker import Watcher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

REFERENCE, KAFKA = 1, (2, 3)
DEADLINE_S = 60.0
RETRY_S = 0.1
INIT_PRODUCER_ID = InitProducerIdRequest(
    transactional_id=None, transaction_timeout=i32Timedelta.parse(timedelta())
)
PROPERTIES = {"min.insync.replicas": 2, "zookeeper.session.timeout.ms": 4_000}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    try:
        TARGETS["mixed"].make_ready(print)
    except MissingRequirement as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("mixed")
    with running(LocalCluster, directory, PROPERTIES, target="mixed") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def watcher(cluster: LocalCluster) -> Iterator[Watcher]:
    with closing(Watcher(cluster.zookeeper)) as watcher:
        yield watcher


def elect(cluster: LocalCluster, watcher: Watcher, *brokers: int) -> None:
    """Delete ``/controller`` until one of these brokers is elected."""
    client = KazooClient(cluster.zookeeper)
    client.start()
    try:

        def is_elected() -> bool:
            controller = watcher.controller()
            if controller is not None and controller not in brokers:
                client.delete("/controller")
            return controller in brokers

        wait_until(is_elected, f"one of {brokers} as the controller", within_s=DEADLINE_S)
    finally:
        client.stop()
        client.close()


async def producer_id(address: Address) -> int:
    """Ask a broker for a producer id until it has one."""
    connection = KafkaConnection(
        address.host, address.port, client_id="asker", source_host="127.0.0.1"
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                answer = await connection.request(INIT_PRODUCER_ID, timeout_s=DEADLINE_S)
                if answer.error_code is ErrorCode.none:
                    return int(answer.producer_id)
                assert answer.error_code is ErrorCode.coordinator_load_in_progress
                await asyncio.sleep(RETRY_S)
    finally:
        connection.close()


def last_block(cluster: LocalCluster) -> dict[str, object]:
    client = KazooClient(cluster.zookeeper)
    client.start()
    try:
        block: dict[str, object] = json.loads(client.get("/latest_producer_id_block")[0])
        return block
    finally:
        client.stop()
        client.close()


def test_kafka_brokers_get_their_producer_ids_from_the_reference(
    cluster: LocalCluster, watcher: Watcher
) -> None:
    elect(cluster, watcher, REFERENCE)
    ids = []
    for broker in (*KAFKA, REFERENCE):
        ids.append(cluster.runner.run(producer_id(cluster.addresses[broker - 1])))
        assert last_block(cluster)["broker"] == broker
    assert [number % 1000 for number in ids] == [0, 0, 0]
    assert len(set(ids)) == 3


def test_records_stay_when_the_office_and_the_leaders_change_their_kind(
    cluster: LocalCluster, watcher: Watcher
) -> None:
    elect(cluster, watcher, REFERENCE)
    topic = NewTopic("kept", num_partitions=1, replica_assignment=[[REFERENCE, *KAFKA]])
    cluster.admin.create_topics([topic])["kept"].result(DEADLINE_S)
    wait_until(lambda: watcher.isr("kept") == {1, 2, 3}, "a full ISR", within_s=DEADLINE_S)
    produce(cluster, "kept", 50)
    cluster.runner.run(supported(cluster.runtime.processes).kill("broker-1"))
    wait_until(lambda: watcher.controller() in KAFKA, "another controller", within_s=DEADLINE_S)
    wait_until(lambda: watcher.leader("kept") in KAFKA, "another leader", within_s=DEADLINE_S)
    produce(cluster, "kept", 50)
    cluster.runner.run(supported(cluster.runtime.processes).restart("broker-1"))
    wait_until(lambda: watcher.isr("kept") == {1, 2, 3}, "a full ISR again", within_s=DEADLINE_S)
    assert ends(cluster, "kept") == (0, 100)


def ends(cluster: LocalCluster, topic: str) -> tuple[int, int]:
    """The first and the next offset of its partition."""
    consumer = Consumer(cluster.client | {"group.id": "none"})
    with closing(consumer):
        first, following = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S)
        return first, following


def produce(cluster: LocalCluster, topic: str, count: int) -> None:
    """Send records idempotently; each is acknowledged by the whole ISR."""
    errors: list[object] = []
    producer = Producer(cluster.client | {"acks": "all", "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, str(number), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert errors == [None] * count
