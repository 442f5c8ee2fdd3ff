"""One reference broker and two of Apache Kafka in a cluster: what either asks of a controller of the other kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupState,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, NewTopic
from kazoo.client import KazooClient
from kio.schema.consumer_group_describe.v0.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v0.request import ConsumerGroupHeartbeatRequest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4.request import InitProducerIdRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from nemesis.interfaces.links import Address
from nemesis.interfaces.unsupported import supported
from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.support.errors import MissingRequirement
from nemesis.targets import TARGETS
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import KafkaError
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
HEARTBEAT = ConsumerGroupHeartbeatRequest(
    group_id=GroupId("g"),
    member_id="",
    member_epoch=i32(0),
    instance_id=None,
    rack_id=None,
    rebalance_timeout=i32Timedelta.parse(timedelta(seconds=5)),
    subscribed_topic_names=(TopicName("kept"),),
    server_assignor=None,
    topic_partitions=(),
)
DESCRIPTION = ConsumerGroupDescribeRequest(
    group_ids=(GroupId("g"), GroupId("")), include_authorized_operations=True
)
OFFSETS = "__consumer_offsets"
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
    create(cluster, topic)
    wait_until(lambda: watcher.isr("kept") == {1, 2, 3}, "a full ISR", within_s=DEADLINE_S)
    produce(cluster, "kept", 50)
    cluster.runner.run(supported(cluster.runtime.processes).kill("broker-1"))
    wait_until(lambda: watcher.controller() in KAFKA, "another controller", within_s=DEADLINE_S)
    wait_until(lambda: watcher.leader("kept") in KAFKA, "another leader", within_s=DEADLINE_S)
    produce(cluster, "kept", 50)
    cluster.runner.run(supported(cluster.runtime.processes).restart("broker-1"))
    wait_until(lambda: watcher.isr("kept") == {1, 2, 3}, "a full ISR again", within_s=DEADLINE_S)
    assert ends(cluster, "kept") == (0, 100)


def create(cluster: LocalCluster, topic: NewTopic) -> None:
    """Create a topic; the broker that is asked first may not know yet which one is the controller."""

    def is_created() -> bool:
        with suppress(KafkaException):
            cluster.admin.create_topics([topic])[topic.topic].result(DEADLINE_S)
        return topic.topic in cluster.admin.list_topics(timeout=DEADLINE_S).topics

    wait_until(is_created, f"topic {topic.topic}", within_s=DEADLINE_S)


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


async def answer(address: Address, request: Any) -> Any:
    connection = KafkaConnection(
        address.host, address.port, client_id="asker", source_host="127.0.0.1"
    )
    try:
        return await connection.request(request, timeout_s=DEADLINE_S)
    finally:
        connection.close()


@pytest.mark.parametrize("request_of_kip_848", [HEARTBEAT, DESCRIPTION])
def test_either_kind_answers_requests_of_kip_848_alike(
    cluster: LocalCluster, request_of_kip_848: object
) -> None:
    by_reference, by_kafka = (
        cluster.runner.run(answer(cluster.addresses[broker - 1], request_of_kip_848))
        for broker in (REFERENCE, KAFKA[0])
    )
    assert by_reference == by_kafka


async def lead(cluster: LocalCluster, watcher: Watcher, partition: int, broker: int) -> None:
    """Make a broker the leader of an offsets partition."""
    admin = KafkaAdmin(
        [(address.host, address.port) for address in cluster.addresses],
        client_id="mover",
        source_host="127.0.0.1",
        rng=Random(1),
    )
    replicas = (broker, *(other for other in (REFERENCE, *KAFKA) if other != broker))
    try:
        async with asyncio.timeout(DEADLINE_S):
            while watcher.leader(OFFSETS, partition) != broker:
                await admin.refresh_metadata()
                with suppress(KafkaError):
                    await admin.reassign(OFFSETS, partition, replicas, timeout_s=DEADLINE_S)
                    await admin.elect_preferred_leader(OFFSETS, partition, timeout_s=DEADLINE_S)
                await asyncio.sleep(RETRY_S)
    finally:
        admin.close()


def test_either_kind_goes_on_with_the_groups_of_the_other(
    cluster: LocalCluster, watcher: Watcher
) -> None:
    """A member commits at each coordinator in turn; no move of the coordinator makes the group rebalance."""
    group = "crossing"
    create(cluster, NewTopic(group, 1, 3))
    assignments: list[int] = []
    settings = {"group.id": group, "group.instance.id": "i", "enable.auto.commit": False}
    consumer = Consumer(cluster.client | settings | {"session.timeout.ms": 45_000})
    consumer.subscribe([group], on_assign=lambda _, given: assignments.append(len(given)))
    with closing(consumer):
        wait_until(lambda: bool(_polled(consumer)), "an assignment", within_s=DEADLINE_S)
        count = len(cluster.admin.list_topics(OFFSETS, DEADLINE_S).topics[OFFSETS].partitions)
        number = partition_for(group, count)
        members: set[str] = set()
        for offset, broker in enumerate((KAFKA[0], REFERENCE, KAFKA[1], REFERENCE)):
            cluster.runner.run(lead(cluster, watcher, number, broker))
            goes_on(consumer, group, offset)
            members |= members_at(cluster, broker, group)
        assert len(members) == 1
        assert assignments == [1]


def goes_on(consumer: Consumer, topic: str, offset: int) -> None:
    """The coordinator has the offset of the former one, and takes the next one."""
    former = offset or OFFSET_INVALID
    wait_until(
        lambda: _committed(consumer, topic) == former, "the former offset", within_s=DEADLINE_S
    )
    wait_until(lambda: _commits(consumer, topic, offset + 1), "a commit", within_s=DEADLINE_S)


def members_at(cluster: LocalCluster, broker: int, group: str) -> set[str]:
    """Return the members of a stable group as its coordinator, this broker, describes them."""
    described: list[ConsumerGroupDescription] = []

    def is_described() -> bool:
        admin = AdminClient(cluster.client)  # one that has asked before asks the former coordinator
        with suppress(KafkaException):
            described.append(admin.describe_consumer_groups([group])[group].result(DEADLINE_S))
        return bool(described) and described[-1].coordinator.id == broker

    wait_until(is_described, f"a description by broker {broker}", within_s=DEADLINE_S)
    assert described[-1].state is ConsumerGroupState.STABLE
    return {member.member_id for member in described[-1].members}


def _polled(consumer: Consumer) -> list[TopicPartition]:
    consumer.poll(0.1)
    assigned: list[TopicPartition] = consumer.assignment()
    return assigned


def _committed(consumer: Consumer, topic: str) -> int | None:
    with suppress(KafkaException):
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=5.0)[0].offset)
    return None


def _commits(consumer: Consumer, topic: str, offset: int) -> bool:
    consumer.poll(0.1)
    with suppress(KafkaException):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        return True
    return False
