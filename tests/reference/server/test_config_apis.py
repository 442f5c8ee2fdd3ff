"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs on a real ZooKeeper: what is written, refused and told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.model import Broker, TopicPartition, UpdateMetadataPartitionState
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.configs import ConfigApis
from nemesis.reference.server.config_admin_manager import ConfigAdminManager
from nemesis.reference.server.config_helper import ConfigHelper
from nemesis.reference.server.dynamic_broker_config import DynamicBrokerConfig
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.trace import NullTracer
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from tests.reference.controller.cluster import config

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
MIN_ISR = "min.insync.replicas"
BROKERS = [Broker.at(b, "h", b) for b in (1, 2)]

Op = tuple[str, str | None, int]


class Admin:
    """Broker 1, which knows the topic t, and what stands in ZooKeeper."""

    def __init__(self, zookeeper: KazooZooKeeperClient, zk_client: KafkaZkClient) -> None:
        self.zookeeper = zookeeper
        self.zk_client = zk_client
        self.dynamic = DynamicBrokerConfig(config(1))
        cache = MetadataCache(1)
        state = UpdateMetadataPartitionState(
            TopicPartition("t", 0), UUID(int=7), 1, 1, 0, (1, 2), 0, (1, 2)
        )
        cache.update(1, 1, BROKERS, [state])
        self.apis = ConfigApis(
            ConfigAdminManager(
                1,
                zk_client=zk_client,
                metadata_cache=cache,
                helper=ConfigHelper(self.dynamic),
            )
        )

    async def alter(
        self,
        *resources: tuple[int, str, Sequence[Op]],
        validate_only: bool = False,
        version: int = 1,
    ) -> list[tuple[ErrorCode, str | None]]:
        """IncrementalAlterConfigs."""
        schema = load_request_schema(ApiKey.INCREMENTAL_ALTER_CONFIGS, version)
        request = _request(
            schema,
            [
                (kind, name, [{"name": n, "value": v, "config_operation": op} for n, v, op in ops])
                for kind, name, ops in resources
            ],
            validate_only=validate_only,
        )
        answer = _over_the_wire(await self.apis.handle_incremental_alter_configs(request))
        return [(item.error_code, item.error_message) for item in answer.responses]

    async def replace(
        self, kind: int, name: str, values: dict[str, str | None], version: int = 2
    ) -> tuple[ErrorCode, str | None]:
        """AlterConfigs."""
        schema = load_request_schema(ApiKey.ALTER_CONFIGS, version)
        items = [{"name": n, "value": v} for n, v in values.items()]
        request = _request(schema, [(kind, name, items)], validate_only=False)
        (item,) = _over_the_wire(await self.apis.handle_alter_configs(request)).responses
        return item.error_code, item.error_message

    async def describe(
        self,
        kind: int,
        name: str,
        keys: tuple[str, ...] | None = None,
        version: int = 4,
        **flags: bool,
    ) -> Any:
        schema = load_request_schema(ApiKey.DESCRIBE_CONFIGS, version)
        asked = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        request = build(
            schema,
            resources=build_items(schema, "resources", [asked]),
            include_synonyms=flags.get("synonyms", False),
            include_documentation=flags.get("documentation", False),
        )
        (result,) = _over_the_wire(await self.apis.handle_describe_configs(request)).results
        return result

    async def stored(self, path: str) -> Any:
        return json.loads((await self.zookeeper.get(path))[0])

    async def notifications(self) -> list[Any]:
        names = sorted(await self.zookeeper.get_children("/config/changes"))
        return [await self.stored(f"/config/changes/{name}") for name in names]


def _request(schema: Any, resources: Sequence[Any], *, validate_only: bool) -> Any:
    resource_class = item_class(schema, "resources")
    items = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": build_items(resource_class, "configs", configs),
        }
        for kind, name, configs in resources
    ]
    return build(
        schema, resources=build_items(schema, "resources", items), validate_only=validate_only
    )


def _over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def run(address: str, test: Callable[[Admin], Awaitable[None]]) -> None:
    async def with_admin() -> None:
        zookeeper = KazooZooKeeperClient(address, 10_000, None)
        zk_client = KafkaZkClient(zookeeper, tracer=NullTracer())
        await zookeeper.start()
        try:
            await zk_client.brokers.make_sure_persistent_paths_exist()
            await test(Admin(zookeeper, zk_client))
        finally:
            await zookeeper.close()

    asyncio.run(asyncio.wait_for(with_admin(), 30))


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.INCREMENTAL_ALTER_CONFIGS].highest + 1))
def test_a_change_is_written_and_everybody_is_notified(
    zookeeper_address: str, version: int
) -> None:
    async def test(admin: Admin) -> None:
        set_two = [(MIN_ISR, "2", SET), ("segment.bytes", "99", SET)]
        assert await admin.alter((TOPIC, "t", set_two), version=version) == [(ErrorCode.none, None)]
        undo = [("segment.bytes", None, DELETE), ("flush.messages", "5", SET)]
        assert await admin.alter((TOPIC, "t", undo), version=version) == [(ErrorCode.none, None)]
        assert await admin.stored("/config/topics/t") == {
            "version": 1,
            "config": {MIN_ISR: "2", "flush.messages": "5"},
        }
        names = await admin.zookeeper.get_children("/config/changes")
        assert sorted(names) == ["config_change_0000000000", "config_change_0000000001"]
        assert await admin.notifications() == [{"version": 2, "entity_path": "topics/t"}] * 2

    run(zookeeper_address, test)


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.ALTER_CONFIGS].highest + 1))
def test_alter_configs_leaves_nothing_of_what_was(zookeeper_address: str, version: int) -> None:
    async def test(admin: Admin) -> None:
        none = (ErrorCode.none, None)
        assert await admin.replace(TOPIC, "t", {MIN_ISR: "2"}, version) == none
        assert await admin.replace(TOPIC, "t", {"flush.messages": "5"}, version) == none
        assert (await admin.stored("/config/topics/t"))["config"] == {"flush.messages": "5"}

    run(zookeeper_address, test)


def test_a_broker_takes_changes_for_itself_and_for_all(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        ops = [(MIN_ISR, "2", SET)]
        own, all_brokers, other, no_number = await admin.alter(
            (BROKER, "1", ops), (BROKER, "", ops), (BROKER, "2", ops), (BROKER, "x", ops)
        )
        assert own == all_brokers == (ErrorCode.none, None)
        sentence = "Unexpected broker id, expected 1 or empty string, but received 2"
        assert other == (ErrorCode.invalid_request, sentence)
        assert no_number[0] is ErrorCode.invalid_request
        assert await admin.notifications() == [
            {"version": 2, "entity_path": "brokers/1"},
            {"version": 2, "entity_path": "brokers/<default>"},
        ]
        assert (await admin.stored("/config/brokers/<default>"))["config"] == {MIN_ISR: "2"}

    run(zookeeper_address, test)


@pytest.mark.parametrize(
    ("kind", "name", "ops", "code", "sentence"),
    [
        (TOPIC, "u", [(MIN_ISR, "2", SET)], ErrorCode.unknown_topic_or_partition, "'u' does not"),
        (TOPIC, "", [(MIN_ISR, "2", SET)], ErrorCode.invalid_request, "Default topic"),
        (TOPIC, "t", [("preallocate", "2", SET)], ErrorCode.invalid_config, "preallocate"),
        (TOPIC, "t", [(MIN_ISR, "x", SET)], ErrorCode.invalid_request, "TOPIC 't': Invalid value x"),
        (TOPIC, "t", [(MIN_ISR, None, SET)], ErrorCode.invalid_request, f"for: {MIN_ISR}"),
        (TOPIC, "t", [(MIN_ISR, "2", SET)] * 2, ErrorCode.invalid_request, "duplicate config keys"),
        (TOPIC, "t", [(MIN_ISR, "2", APPEND)], ErrorCode.invalid_config, "value append is not"),
        (TOPIC, "t", [(MIN_ISR, "2", SUBTRACT)], ErrorCode.invalid_config, "value subtract is not"),
        (TOPIC, "t", [(MIN_ISR, "2", 9)], ErrorCode.invalid_request, "Unknown operation 9"),
        (BROKER, "1", [("broker.id", "2", SET)], ErrorCode.invalid_request, "dynamically: broker.id"),
        (BROKER_LOGGER, "1", [("x", "2", SET)], ErrorCode.invalid_request, "resource type is 8"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_written(
    zookeeper_address: str, kind: int, name: str, ops: list[Op], code: ErrorCode, sentence: str
) -> None:
    async def test(admin: Admin) -> None:
        (answer,) = await admin.alter((kind, name, ops))
        assert answer[0] is code
        assert sentence in (answer[1] or "")
        assert await admin.notifications() == []
        assert await admin.zookeeper.get_children("/config/topics") == []

    run(zookeeper_address, test)


def test_each_resource_has_its_own_answer_and_may_be_named_once(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        ops = [(MIN_ISR, "2", SET)]
        answers = await admin.alter(
            (TOPIC, "t", ops), (BROKER, "1", ops), (TOPIC, "t", ops), (TOPIC, "u", ops)
        )
        twice = ErrorCode.invalid_request
        unknown = ErrorCode.unknown_topic_or_partition
        assert [code for code, _ in answers] == [twice, ErrorCode.none, twice, unknown]
        assert await admin.notifications() == [{"version": 2, "entity_path": "brokers/1"}]

    run(zookeeper_address, test)


def test_validating_only_writes_nothing(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        good = (TOPIC, "t", [(MIN_ISR, "2", SET)])
        bad = (BROKER, "1", [(MIN_ISR, "0", SET)])
        answers = await admin.alter(good, bad, validate_only=True)
        assert [code for code, _ in answers] == [ErrorCode.none, ErrorCode.invalid_request]
        assert await admin.notifications() == []
        assert await admin.zookeeper.exists("/config/topics/t") is None

    run(zookeeper_address, test)


def test_two_who_change_at_the_same_time_both_have_their_way(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        changes = [
            admin.alter((TOPIC, "t", [(name, "20", SET)]))
            for name in (MIN_ISR, "segment.bytes", "max.message.bytes", "flush.messages")
        ]
        assert await asyncio.gather(*changes) == [[(ErrorCode.none, None)]] * 4
        assert len((await admin.stored("/config/topics/t"))["config"]) == 4

    run(zookeeper_address, test)


def test_what_another_system_has_set_stays(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        foreign = b'{"version":1,"config":{"preallocate":"9"}}'
        await admin.zookeeper.create("/config/topics/t", foreign)
        assert (await admin.alter((TOPIC, "t", [(MIN_ISR, "2", SET)])))[0][0] is ErrorCode.none
        assert (await admin.stored("/config/topics/t"))["config"] == {
            "preallocate": "9",
            MIN_ISR: "2",
        }

    run(zookeeper_address, test)


def test_settings_that_cannot_be_read_are_neither_told_nor_changed(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        await admin.zookeeper.create("/config/topics/t", b"no JSON")
        (answer,) = await admin.alter((TOPIC, "t", [(MIN_ISR, "2", SET)]))
        assert answer[0] is ErrorCode.unknown_server_error
        assert "/config/topics/t does not hold JSON" in (answer[1] or "")
        assert (await admin.describe(TOPIC, "t")).error_code is ErrorCode.unknown_server_error
        assert (await admin.zookeeper.get("/config/topics/t"))[0] == b"no JSON"

    run(zookeeper_address, test)


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.DESCRIBE_CONFIGS].highest + 1))
def test_settings_are_told_in_every_version(zookeeper_address: str, version: int) -> None:
    async def test(admin: Admin) -> None:
        await admin.replace(TOPIC, "t", {MIN_ISR: "2"})
        described = await admin.describe(
            TOPIC,
            "t",
            (MIN_ISR, "segment.bytes", "no.such"),
            version,
            synonyms=True,
            documentation=True,
        )
        assert (described.error_code, described.resource_type, described.resource_name) == (
            ErrorCode.none,
            TOPIC,
            "t",
        )
        by_name = {item.name: item for item in described.configs}
        assert {name: item.value for name, item in by_name.items()} == {
            MIN_ISR: "2",
            "segment.bytes": "1073741824",
        }
        if version == 0:
            assert [by_name[MIN_ISR].is_default, by_name["segment.bytes"].is_default] == [
                False,
                True,
            ]
        else:
            assert [item.config_source for item in by_name.values()] == [5, 1]
            assert [(s.value, s.source) for s in by_name[MIN_ISR].synonyms] == [("2", 1), ("1", 5)]
        if version >= 3:
            assert [item.config_type for item in by_name.values()] == [3, 3]
            assert all(item.documentation for item in by_name.values())

    run(zookeeper_address, test)


def test_neither_synonyms_nor_documentation_come_unasked(zookeeper_address: str) -> None:
    async def test(admin: Admin) -> None:
        described = await admin.describe(BROKER, "1", (MIN_ISR,))
        (item,) = described.configs
        assert (item.value, item.synonyms, item.documentation) == ("1", (), None)

    run(zookeeper_address, test)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "u", ErrorCode.unknown_topic_or_partition),
        (TOPIC, "a b", ErrorCode.invalid_topic_exception),
        (BROKER, "2", ErrorCode.invalid_request),
        (BROKER_LOGGER, "1", ErrorCode.invalid_request),
    ],
)
def test_whose_settings_are_not_told(
    zookeeper_address: str, kind: int, name: str, code: ErrorCode
) -> None:
    async def test(admin: Admin) -> None:
        described = await admin.describe(kind, name)
        assert (described.error_code, described.configs) == (code, ())

    run(zookeeper_address, test)
