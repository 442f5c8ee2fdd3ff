"""Three whole brokers whose messages cross by reference: each equals what the real codec would have made of it."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.static.primitive import i8

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.network.network_client import BrokerConnection
from nemesis.reference.protocol import codec as wire_format
from nemesis.reference.protocol.codec import SIZE_BYTES
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey, is_offered
from nemesis.reference.server.kafka_server import KafkaServer
from nemesis.simulation.codec import ByReferenceCodec
from nemesis.workloads.kafka import codec as client_wire_format
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.timeouts import milliseconds
from tests.reference.cluster.hosting import config
from tests.reference.controller.cluster import SESSION_TIMEOUT_MS, ListTracer
from tests.reference.coordinator import group_requests
from tests.reference.free_port import HOST, free_port

BROKERS = (1, 2, 3)
TOPIC = "t"


def differences(path: str, sent: Any, received: Any) -> list[str]:
    """Where two values differ, in type or in value."""
    if type(sent) is not type(received):
        return [f"{path}: {type(sent).__name__}, the wire gives {type(received).__name__}"]
    if dataclasses.is_dataclass(sent):
        return [
            difference
            for field in dataclasses.fields(sent)
            for difference in differences(
                f"{path}.{field.name}", getattr(sent, field.name), getattr(received, field.name)
            )
        ]
    if isinstance(sent, tuple) and len(sent) == len(received):
        return [
            difference
            for index, (item, other) in enumerate(zip(sent, received, strict=True))
            for difference in differences(f"{path}[{index}]", item, other)
        ]
    return [] if sent == received else [f"{path}: {sent!r}, the wire gives {received!r}"]


class ComparingCodec(ByReferenceCodec):
    """By reference, but each message also takes the way over the wire and is compared."""

    def __init__(self) -> None:
        super().__init__()
        self.differences: set[str] = set()
        self.requests: set[int] = set()
        self.responses: set[int] = set()

    def encode_request(self, message: Any, *, correlation_id: int, client_id: str) -> bytes:
        frame = wire_format.encode_request(
            message, correlation_id=correlation_id, client_id=client_id
        )
        request = wire_format.decode_request(frame[SIZE_BYTES:], is_offered=is_offered)
        self._compare(message, request.message)
        self.requests.add(request.api_key)
        assert (request.correlation_id, request.client_id) == (correlation_id, client_id)
        return super().encode_request(message, correlation_id=correlation_id, client_id=client_id)

    def encode_response(self, message: Any, *, correlation_id: int) -> bytes:
        frame = wire_format.encode_response(message, correlation_id=correlation_id)[SIZE_BYTES:]
        for codec in (wire_format, client_wire_format):
            self._compare(message, codec.decode_response(frame, type(message))[1])
        self.responses.add(message.__api_key__)
        return super().encode_response(message, correlation_id=correlation_id)

    def _compare(self, sent: Any, received: Any) -> None:
        self.differences.update(differences(type(sent).__name__, sent, received))


def test_differences_are_seen() -> None:
    """Of type as well as of value: 1 == True == ErrorCode(1), and b'' == memoryview(b'')."""

    class Item(Enum):
        FIRST = 1

    assert differences("x", (1, b""), (1, b"")) == []
    assert differences("x", (True, b""), (1, memoryview(b""))) != []
    assert differences("x", Item.FIRST, 1) != []
    assert differences("x", (1,), (1, 2)) != []


async def move_to_where_it_is(client: KafkaAdmin, node: int) -> None:
    """Ask for a move to the broker's only log directory."""
    (path,) = await client.replicas_by_log_dir(node, timeout_s=5)
    await client.alter_replica_log_dir(node, (TOPIC, 0), path, timeout_s=5)


async def gone(client: KafkaAdmin, broker_id: int) -> None:
    """Until a dead broker is known to be dead, its leaders wait for it to join the ISR again."""
    while broker_id in client.metadata.brokers:
        await client.refresh_metadata()
        await asyncio.sleep(0.02)


async def all_in_sync(client: KafkaAdmin) -> None:
    while len(client.metadata.topics[TOPIC].partitions[0].isr) < len(BROKERS):
        await client.refresh_metadata()
        await asyncio.sleep(0.02)


async def attempt(action: Any) -> Any:
    """Try until it succeeds: leaders move."""
    while True:
        try:
            return await action()
        except (KafkaError, NetworkError):
            await asyncio.sleep(0.02)


@pytest.fixture
def codec() -> ComparingCodec:
    return ComparingCodec()


def test_the_messages_of_a_clusters_life_are_what_the_wire_would_make_of_them(
    tmp_path: Path, zookeeper_address: str, codec: ComparingCodec
) -> None:
    ports = {broker_id: free_port() for broker_id in BROKERS}

    def server(broker_id: int) -> KafkaServer:
        port = ports[broker_id]
        return KafkaServer(
            config(
                tmp_path / str(broker_id),
                broker_id,
                listeners=f"PLAINTEXT://{HOST}:{port}",
                **{
                    "replica.fetch.wait.max.ms": 20,
                    "group.initial.rebalance.delay.ms": 0,
                    "offsets.topic.num.partitions": 2,
                },
            ),
            disk=RealDisk(),
            zookeeper=KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None),
            tracer=ListTracer(),
            rng=Random(broker_id),
            wall_clock=lambda: 0,
            codec=codec,
        )

    async def test() -> None:
        servers = {broker_id: server(broker_id) for broker_id in BROKERS}
        client = KafkaAdmin(
            [(HOST, port) for port in ports.values()],
            client_id="c",
            source_host=HOST,
            rng=Random(1),
            codec=codec,
        )

        async def create() -> None:
            await client.refresh_metadata()
            await client.create_topic(TOPIC, partitions=2, replication_factor=3, timeout_s=5)

        async def send() -> None:
            await client.refresh_metadata()
            batches: list[list[tuple[bytes | None, bytes | None]]] = [
                [(b"k", b"v")],
                [(None, None), (b"", b"")],
            ]
            for records in batches:
                await client.send(TOPIC, 0, records, acks=-1, timeout_s=5)
            await client.send(TOPIC, 1, [(b"k", b"v")], acks=1, timeout_s=5)

        async def poll() -> None:
            await client.refresh_metadata()
            for partition in (0, 1):
                await client.poll(
                    TOPIC, partition, 0, max_wait_ms=50, max_bytes=1 << 20, timeout_s=5
                )
                await client.end_offset(TOPIC, partition, timeout_s=5)
                with pytest.raises(KafkaError):
                    await client.poll(
                        TOPIC, partition, 99, max_wait_ms=50, max_bytes=1 << 20, timeout_s=5
                    )

        async def reassign() -> None:
            await client.refresh_metadata()
            await client.reassign(TOPIC, 0, BROKERS, timeout_s=5)

        async def delete_records() -> None:
            await client.refresh_metadata()
            assert await client.delete_records(TOPIC, 1, 1, timeout_s=5) == 1
            assert await client.start_offset(TOPIC, 1, timeout_s=5) == 1

        for broker in servers.values():
            await broker.startup()
        try:
            await attempt(create)
            await attempt(send)
            await attempt(poll)
            leader = client.metadata.topics[TOPIC].partitions[0].leader
            await servers[leader].controlled_shutdown()
            await servers.pop(leader).shutdown()
            await attempt(partial(gone, client, leader))
            await attempt(send)
            servers[leader] = server(leader)
            await servers[leader].startup()
            await attempt(send)
            await attempt(poll)
            async with asyncio.timeout(10):
                await attempt(partial(all_in_sync, client))
            await attempt(delete_records)
            await attempt(reassign)
            await attempt(partial(move_to_where_it_is, client, leader))
            await live_in_a_group(codec, [(HOST, port) for port in ports.values()])
            await administer(client)
            await ask_what_clients_of_ours_do_not(codec, ports[client.metadata.controller_id])
        finally:
            client.close()
            for broker in servers.values():
                await broker.shutdown()

    asyncio.run(asyncio.wait_for(test(), 30))

    assert codec.differences == set()
    seldom = {ApiKey.STOP_REPLICA, ApiKey.OFFSET_FOR_LEADER_EPOCH}
    assert codec.requests >= set(ApiKey) - seldom
    assert codec.responses >= set(ApiKey) - seldom


async def administer(client: KafkaAdmin) -> None:
    """What is asked of the controller beside creation, and of any broker."""
    with suppress(KafkaError):  # it may lead already
        await client.elect_preferred_leader(TOPIC, 0, timeout_s=4)
    await client.reassignments(timeout_s=4)
    await client.create_partitions(TOPIC, count=3, timeout_s=4)
    assert (TOPIC, 0) in await client.log_dirs(client.metadata.brokers[BROKERS[0]], timeout_s=4)
    await client.delete_topic(TOPIC, timeout_s=4)


async def live_in_a_group(codec: ComparingCodec, addresses: list[tuple[str, int]]) -> None:
    """Every request about groups, until the group is deleted."""
    connection = BrokerConnection(
        client_id="c", source_address=None, max_response_bytes=99_999, codec=codec
    )

    async def ask(address: tuple[str, int] | None, request: Any) -> Any:
        try:
            return await connection.send(*(address or addresses[0]), request, timeout_s=5)
        except NetworkError:
            return None

    client = group_requests.GroupClient("g", ask)
    joined = await client.join()
    assert (await client.sync(joined)).assignment == joined.member_id.encode()
    assert await client.heartbeat(joined) is ErrorCode.none
    assert await client.commit(TOPIC, 7, joined) is ErrorCode.none
    assert await client.committed(TOPIC) == 7
    latest = group_requests.latest
    for request in (
        build(latest(ApiKey.LIST_GROUPS), states_filter=(), types_filter=()),
        build(
            latest(ApiKey.DESCRIBE_GROUPS),
            groups=("g",),
            include_authorized_operations=False,
        ),
        group_requests.leave_group("g", joined),
        group_requests.offset_delete("g", TOPIC),
        build(latest(ApiKey.DELETE_GROUPS), groups_names=("g",)),
    ):
        await client.send(request, lambda response: getattr(response, "error_code", ErrorCode.none))
    await connection.close()


async def ask_what_clients_of_ours_do_not(codec: ComparingCodec, port: int) -> None:
    connection = BrokerConnection(
        client_id="c", source_address=None, max_response_bytes=9999, codec=codec
    )
    for request in (
        ApiVersionsRequest(client_software_name="n", client_software_version="1"),
        DescribeClusterRequest(include_cluster_authorized_operations=False),
        InitProducerIdRequest(transactional_id=None, transaction_timeout=milliseconds(1000)),
        build(
            load_request_schema(
                ApiKey.ALLOCATE_PRODUCER_IDS, OFFERED[ApiKey.ALLOCATE_PRODUCER_IDS].highest
            ),
            broker_id=BROKERS[0],
            broker_epoch=0,
        ),
        build(
            load_request_schema(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0),
            group_id="g",
            member_id="",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=timedelta(seconds=5),
            subscribed_topic_names=(TOPIC,),
            server_assignor=None,
            topic_partitions=(),
        ),
        build(
            load_request_schema(ApiKey.CONSUMER_GROUP_DESCRIBE, 0),
            group_ids=("g",),
            include_authorized_operations=False,
        ),
        *about_settings_of_all_brokers(),
        *about_transactions(),
        *about_a_transactional_id(),
    ):
        await connection.send(HOST, port, request, timeout_s=5)
    await connection.close()


def about_transactions() -> list[Any]:
    """A marker of a producer that wrote nothing, and a question about producers."""
    partitions = [{"name": TOPIC, "partition_indexes": (0,)}]
    markers = load_request_schema(
        ApiKey.WRITE_TXN_MARKERS, OFFERED[ApiKey.WRITE_TXN_MARKERS].highest
    )
    marker = {
        "producer_id": 7,
        "producer_epoch": 0,
        "transaction_result": True,
        "coordinator_epoch": 0,
        "topics": build_items(item_class(markers, "markers"), "topics", partitions),
    }
    producers = load_request_schema(ApiKey.DESCRIBE_PRODUCERS, 0)
    return [
        build(markers, markers=build_items(markers, "markers", [marker])),
        build(producers, topics=build_items(producers, "topics", partitions)),
    ]


def about_settings_of_all_brokers() -> list[Any]:
    """Set one, incrementally and not, and ask for them."""
    setting = {"name": "min.insync.replicas", "value": "1"}
    requests = []
    for key, configs in (
        (ApiKey.ALTER_CONFIGS, [setting]),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, [{**setting, "config_operation": i8(0)}]),
        (ApiKey.DESCRIBE_CONFIGS, []),
    ):
        schema = load_request_schema(key, OFFERED[key].highest)
        resource: dict[str, Any] = {
            "resource_type": i8(4),
            "resource_name": "",
            "configuration_keys": None,
        }
        if configs:
            resource["configs"] = build_items(item_class(schema, "resources"), "configs", configs)
        requests.append(
            build(
                schema,
                resources=build_items(schema, "resources", [resource]),
                validate_only=False,
                include_synonyms=True,
                include_documentation=True,
            )
        )
    return requests


def about_a_transactional_id() -> list[Any]:
    """Every request to a transaction coordinator, about an id that no broker coordinates."""
    latest = group_requests.latest
    add = latest(ApiKey.ADD_PARTITIONS_TO_TXN)
    producer = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0}
    topics = [{"name": TOPIC, "partitions": (0,)}]
    transaction = {
        **producer,
        "verify_only": False,
        "topics": build_items(item_class(add, "transactions"), "topics", topics),
    }
    return [
        build(add, transactions=build_items(add, "transactions", [transaction])),
        build(latest(ApiKey.ADD_OFFSETS_TO_TXN), **producer, group_id="g"),
        offsets_in_a_transaction(producer),
        build(latest(ApiKey.END_TXN), **producer, committed=True),
        build(
            latest(ApiKey.LIST_TRANSACTIONS),
            state_filters=(),
            producer_id_filters=(),
            duration_filter=-1,
        ),
        build(latest(ApiKey.DESCRIBE_TRANSACTIONS), transactional_ids=("x",)),
    ]


def offsets_in_a_transaction(producer: dict[str, Any]) -> Any:
    """An offset that a producer commits in its transaction, for a group without members."""
    commit = group_requests.latest(ApiKey.TXN_OFFSET_COMMIT)
    offset = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "m"}
    partitions = build_items(item_class(commit, "topics"), "partitions", [offset])
    return build(
        commit,
        **producer,
        group_id="g",
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=build_items(commit, "topics", [{"name": TOPIC, "partitions": partitions}]),
    )
