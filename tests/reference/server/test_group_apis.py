"""The requests about groups over a real coordinator: every offered version says the same in its own words."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.schema import build, build_items, field_names, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey, is_offered
from nemesis.reference.server.apis.group_offsets import GroupOffsetApis
from nemesis.reference.server.apis.groups import GroupApis
from tests.reference.cluster.hosting import TP
from tests.reference.coordinator.group_node import (
    GROUP,
    PRODUCER_ID,
    GroupNode,
    on_group_node,
)
from tests.reference.server.answers import answered

KEYS = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
)
HIGHEST = max(OFFERED[key].highest for key in KEYS)


def items(entity: type[Any], field: str, *values: dict[str, Any]) -> tuple[Any, ...]:
    """The items of a field, none where the version does not have it."""
    return build_items(entity, field, values) if field in field_names(entity) else ()


class Client:
    """Sends each request in the version, or the highest that there is, through the codec."""

    def __init__(self, node: GroupNode, version: int) -> None:
        self.version = version
        self.groups = GroupApis(node.coordinator)
        self.offsets = GroupOffsetApis(node.coordinator, node.node.cache, node.now_ms)

    def schema(self, key: ApiKey) -> type[Any]:
        return load_request_schema(key, min(self.version, OFFERED[key].highest))

    async def send(self, key: ApiKey, **values: Any) -> Any:
        sent = build(self.schema(key), group_id=GROUP, **values)
        frame = encode_request(sent, correlation_id=1, client_id="c")
        message = decode_request(frame[SIZE_BYTES:], is_offered=is_offered).message
        handlers: dict[ApiKey, Any] = {
            ApiKey.JOIN_GROUP: lambda request: self.groups.handle_join_group(request, "c", "h"),
            ApiKey.SYNC_GROUP: self.groups.handle_sync_group,
            ApiKey.HEARTBEAT: self.groups.handle_heartbeat,
            ApiKey.LEAVE_GROUP: self.groups.handle_leave_group,
            ApiKey.DESCRIBE_GROUPS: self.groups.handle_describe_groups,
            ApiKey.LIST_GROUPS: self.groups.handle_list_groups,
            ApiKey.DELETE_GROUPS: self.groups.handle_delete_groups,
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self.groups.handle_consumer_group_heartbeat,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self.groups.handle_consumer_group_describe,
            ApiKey.OFFSET_COMMIT: self.offsets.handle_offset_commit,
            ApiKey.TXN_OFFSET_COMMIT: self.offsets.handle_txn_offset_commit,
            ApiKey.OFFSET_FETCH: self.offsets.handle_offset_fetch,
            ApiKey.OFFSET_DELETE: self.offsets.handle_offset_delete,
        }
        response = await answered(handlers[key](message))
        reply = encode_response(response, correlation_id=1)
        return decode_response(reply[SIZE_BYTES:], type(response))[1]

    async def join(self, member_id: str = "", instance: str | None = None) -> Any:
        schema = self.schema(ApiKey.JOIN_GROUP)
        return await self.send(
            ApiKey.JOIN_GROUP,
            session_timeout=timedelta(seconds=9),
            rebalance_timeout=timedelta(seconds=9),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=items(schema, "protocols", {"name": "range", "metadata": b"r"}),
            reason=None,
        )

    async def sync(self, joined: Any, **values: Any) -> Any:
        schema = self.schema(ApiKey.SYNC_GROUP)
        assignment = {"member_id": joined.member_id, "assignment": b"all"}
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        return await self.send(
            ApiKey.SYNC_GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=None,
            assignments=items(schema, "assignments", assignment),
            **named | values,
        )

    async def commit(self, offset: int, joined: Any = None) -> Any:
        schema = self.schema(ApiKey.OFFSET_COMMIT)
        topic_class = item_class(schema, "topics")
        partitions = [
            {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": 1,
                "committed_metadata": "m",
                "commit_timestamp": -1,
            }
            for number in (TP.partition, 99)
        ]
        topic = {"name": TP.topic, "partitions": items(topic_class, "partitions", *partitions)}
        response = await self.send(
            ApiKey.OFFSET_COMMIT,
            generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
            member_id="" if joined is None else joined.member_id,
            group_instance_id=None,
            retention_time=timedelta(milliseconds=-1),
            topics=items(schema, "topics", topic),
        )
        return {p.partition_index: p.error_code for t in response.topics for p in t.partitions}

    async def commit_in_transaction(self, offset: int, joined: Any = None) -> Any:
        schema = self.schema(ApiKey.TXN_OFFSET_COMMIT)
        partitions = [
            {
                "partition_index": number,
                "committed_offset": offset,
                "committed_leader_epoch": 1,
                "committed_metadata": "m",
            }
            for number in (TP.partition, 99)
        ]
        topic_class = item_class(schema, "topics")
        topic = {"name": TP.topic, "partitions": items(topic_class, "partitions", *partitions)}
        response = await self.send(
            ApiKey.TXN_OFFSET_COMMIT,
            transactional_id="t",
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            generation_id=-1 if joined is None else joined.generation_id,
            member_id="" if joined is None else joined.member_id,
            group_instance_id=None,
            topics=items(schema, "topics", topic),
        )
        return {p.partition_index: p.error_code for t in response.topics for p in t.partitions}

    async def fetch(self, *, is_all: bool = False) -> Any:
        schema = self.schema(ApiKey.OFFSET_FETCH)
        topic = {"name": TP.topic, "partition_indexes": (TP.partition,)}
        group_class = item_class(schema, "groups") if "groups" in field_names(schema) else schema
        topics = None if is_all else items(group_class, "topics", topic)
        group = {"group_id": GROUP, "member_id": None, "member_epoch": -1, "topics": topics}
        response = await self.send(
            ApiKey.OFFSET_FETCH,
            topics=topics,
            groups=items(schema, "groups", group),
            require_stable=True,
        )
        fetched = response.groups[0] if "groups" in field_names(type(response)) else response
        error = getattr(fetched, "error_code", ErrorCode.none)
        (partition,) = [p for t in fetched.topics for p in t.partitions] or [None]
        if partition is None:
            return error, None, None
        return error or partition.error_code, partition.committed_offset, partition.metadata


@pytest.mark.parametrize("version", range(HIGHEST + 1))
def test_the_life_of_a_member_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        client = Client(node, version)
        joined = await client.join()
        if version >= 4:
            assert joined.error_code is ErrorCode.member_id_required
            assert (joined.generation_id, joined.leader, joined.members) == (-1, "", ())
            joined = await client.join(joined.member_id)
        assert (joined.error_code, joined.generation_id) == (ErrorCode.none, 1)
        assert joined.leader == joined.member_id == joined.members[0].member_id
        assert (joined.protocol_name, joined.members[0].metadata) == ("range", b"r")
        synced = await client.sync(joined)
        assert (synced.error_code, synced.assignment) == (ErrorCode.none, b"all")
        member = {"generation_id": joined.generation_id, "member_id": joined.member_id}
        beat = await client.send(ApiKey.HEARTBEAT, **member, group_instance_id=None)
        assert beat.error_code is ErrorCode.none
        if version > 0:  # version 0 does not name a member
            errors = await client.commit(7, joined)
            assert errors == {0: ErrorCode.none, 99: ErrorCode.unknown_topic_or_partition}
            assert await client.fetch() == (ErrorCode.none, 7, "m")
        if version >= 2:
            assert await client.fetch(is_all=True) == (ErrorCode.none, 7, "m")
        await describe(client, joined)
        left = await leave(client, joined.member_id)
        assert left is ErrorCode.none
        await asyncio.sleep(0.01)
        if version == 0:
            assert (await client.commit(7))[0] is ErrorCode.none
            assert await client.fetch() == (ErrorCode.none, 7, "m")
        await delete(client)

    on_group_node(tmp_path, scenario)


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.TXN_OFFSET_COMMIT].highest + 1))
def test_offsets_are_committed_in_transactions_in_every_version(
    tmp_path: Path, version: int
) -> None:
    async def scenario(node: GroupNode) -> None:
        client = Client(node, version)
        assert (await client.commit_in_transaction(7))[0] is ErrorCode.not_coordinator
        node.loading_may_go_on.clear()
        node.give_role(1, 0)
        loading = "coordinator_not_available" if version < 2 else "coordinator_load_in_progress"
        assert (await client.commit_in_transaction(7))[0] is ErrorCode[loading]
        node.loading_may_go_on.set()
        await asyncio.sleep(0.1)
        (member,) = await node.stable()
        unknown = ErrorCode.unknown_topic_or_partition
        errors = await client.commit_in_transaction(7, member)
        assert errors == {0: ErrorCode.none, 99: unknown}
        latest = Client(node, OFFERED[ApiKey.OFFSET_FETCH].highest)
        assert await latest.fetch() == (ErrorCode.unstable_offset_commit, -1, "")
        await node.end_transaction(is_commit=True)
        assert await latest.fetch() == (ErrorCode.none, 7, "m")
        stranger = replace(member, member_id="stranger")
        error = ErrorCode.unknown_member_id if version >= 3 else ErrorCode.none
        errors = await client.commit_in_transaction(8, stranger)
        assert errors == {0: error, 99: unknown}

    on_group_node(tmp_path, scenario)


async def describe(client: Client, joined: Any) -> None:
    described = await client.send(
        ApiKey.DESCRIBE_GROUPS, groups=(GROUP, "other"), include_authorized_operations=False
    )
    group, other = described.groups
    assert (group.error_code, group.group_state) == (ErrorCode.none, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "c", "/h")
    assert (member.member_metadata, member.member_assignment) == (b"r", b"all")
    assert other.error_code in (ErrorCode.none, ErrorCode.not_coordinator)
    listed = await client.send(ApiKey.LIST_GROUPS, states_filter=(), types_filter=())
    assert listed.error_code is ErrorCode.none
    assert [(g.group_id, g.protocol_type) for g in listed.groups] == [(GROUP, "consumer")]
    if client.version >= 4:
        for state, count in (("stable", 1), ("Empty", 0)):
            listed = await client.send(ApiKey.LIST_GROUPS, states_filter=(state,), types_filter=())
            assert len(listed.groups) == count
    if client.version >= 5:
        assert listed.groups == ()
        other_type = ("consumer",)
        listed = await client.send(ApiKey.LIST_GROUPS, states_filter=(), types_filter=other_type)
        assert listed.groups == ()


async def leave(client: Client, member_id: str) -> ErrorCode:
    schema = client.schema(ApiKey.LEAVE_GROUP)
    member = {"member_id": member_id, "group_instance_id": None, "reason": None}
    left = await client.send(
        ApiKey.LEAVE_GROUP, member_id=member_id, members=items(schema, "members", member)
    )
    assert left.error_code is ErrorCode.none
    errors: list[ErrorCode] = [item.error_code for item in getattr(left, "members", ())]
    return errors[0] if errors else left.error_code


async def delete(client: Client) -> None:
    schema = client.schema(ApiKey.OFFSET_DELETE)
    topic_class = item_class(schema, "topics")
    topic = {
        "name": TP.topic,
        "partitions": items(
            topic_class, "partitions", {"partition_index": 0}, {"partition_index": 99}
        ),
    }
    deleted = await client.send(ApiKey.OFFSET_DELETE, topics=items(schema, "topics", topic))
    assert deleted.error_code is ErrorCode.none
    errors = {p.partition_index: p.error_code for t in deleted.topics for p in t.partitions}
    assert errors == {0: ErrorCode.none, 99: ErrorCode.unknown_topic_or_partition}
    assert await client.fetch() == (ErrorCode.none, -1, "")
    results = (await client.send(ApiKey.DELETE_GROUPS, groups_names=(GROUP,))).results
    not_found = ErrorCode.group_id_not_found  # it went with its last offset
    assert [(r.group_id, r.error_code) for r in results] == [(GROUP, not_found)]


@pytest.mark.parametrize("version", range(HIGHEST + 1))
def test_a_broker_that_coordinates_nothing_says_so_in_every_version(
    tmp_path: Path, version: int
) -> None:
    async def scenario(node: GroupNode) -> None:
        client, error = Client(node, version), ErrorCode.not_coordinator
        joined = await client.join()
        assert joined.error_code is error
        assert (await client.sync(joined)).error_code is error
        assert (await client.fetch())[0] is error
        assert (await client.commit(1))[0] is error
        beat = await client.send(
            ApiKey.HEARTBEAT, generation_id=1, member_id="m", group_instance_id=None
        )
        assert beat.error_code is error
        results = (await client.send(ApiKey.DELETE_GROUPS, groups_names=(GROUP,))).results
        assert [result.error_code for result in results] == [error]
        listed = await client.send(ApiKey.LIST_GROUPS, states_filter=(), types_filter=())
        assert (listed.error_code, listed.groups) == (ErrorCode.none, ())

    on_group_node(tmp_path, scenario)


def test_a_sync_of_version_5_names_the_protocol(tmp_path: Path) -> None:
    async def scenario(node: GroupNode) -> None:
        await node.lead()
        client = Client(node, 5)
        joined = await client.join((await client.join()).member_id)
        refused = await client.sync(joined, protocol_name=None)
        assert refused.error_code is ErrorCode.inconsistent_group_protocol

    on_group_node(tmp_path, scenario)


def test_requests_of_kip_848_are_answered_as_by_kafka_with_zookeeper(tmp_path: Path) -> None:
    """The answers are those that a broker of 3.9.1 gave."""

    async def scenario(node: GroupNode) -> None:
        client = Client(node, 0)
        beat = await client.send(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            member_id="",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=timedelta(seconds=5),
            subscribed_topic_names=(TP.topic,),
            server_assignor=None,
            topic_partitions=(),
        )
        unsupported = ErrorCode.unsupported_version
        assert (beat.error_code, beat.error_message, beat.member_id) == (unsupported, None, None)
        assert (beat.member_epoch, beat.heartbeat_interval) == (0, timedelta())
        assert beat.assignment is None
        described = await client.send(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            group_ids=(GROUP, "", GROUP),
            include_authorized_operations=True,
        )
        assert [group.group_id for group in described.groups] == [GROUP, "", GROUP]
        for group in described.groups:
            assert (group.error_code, group.error_message) == (unsupported, None)
            assert (group.group_state, group.assignor_name, group.members) == ("", "", ())
            assert (group.group_epoch, group.assignment_epoch) == (0, 0)
            assert group.authorized_operations == -(1 << 31)

    on_group_node(tmp_path, scenario)
