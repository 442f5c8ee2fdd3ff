"""Requests about groups as a client sends them, in the latest version, and a member that sends them and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey

RETRIABLE = (
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
    ErrorCode.rebalance_in_progress,
    ErrorCode.request_timed_out,
    ErrorCode.unknown_topic_or_partition,
)


def latest(key: ApiKey) -> type[Any]:
    return load_request_schema(key, OFFERED[key].highest)


def find_coordinator(group: str) -> Any:
    return build(latest(ApiKey.FIND_COORDINATOR), key_type=0, coordinator_keys=(group,))


def join_group(
    group: str, member_id: str = "", instance: str | None = None, *, session_s: float = 10.0
) -> Any:
    schema = latest(ApiKey.JOIN_GROUP)
    protocol = {"name": "range", "metadata": b"r"}
    return build(
        schema,
        group_id=group,
        session_timeout=timedelta(seconds=session_s),
        rebalance_timeout=timedelta(seconds=10),
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=build_items(schema, "protocols", [protocol]),
        reason=None,
    )


def sync_group(group: str, joined: Any, instance: str | None = None) -> Any:
    """The leader assigns each member its own id."""
    schema = latest(ApiKey.SYNC_GROUP)
    assignments = [
        {"member_id": member.member_id, "assignment": member.member_id.encode()}
        for member in joined.members
    ]
    return build(
        schema,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name="range",
        assignments=build_items(schema, "assignments", assignments),
    )


def heartbeat(group: str, joined: Any, instance: str | None = None) -> Any:
    return build(
        latest(ApiKey.HEARTBEAT),
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
    )


def leave_group(group: str, joined: Any) -> Any:
    schema = latest(ApiKey.LEAVE_GROUP)
    member = {"member_id": joined.member_id, "group_instance_id": None, "reason": None}
    return build(schema, group_id=group, members=build_items(schema, "members", [member]))


def offset_commit(group: str, topic: str, offset: int, joined: Any = None) -> Any:
    """Of partition 0, as a member or (None) as a client without membership."""
    schema = latest(ApiKey.OFFSET_COMMIT)
    topic_class = item_class(schema, "topics")
    partition = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    partitions = build_items(topic_class, "partitions", [partition])
    return build(
        schema,
        group_id=group,
        generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
        member_id="" if joined is None else joined.member_id,
        group_instance_id=None,
        topics=build_items(schema, "topics", [{"name": topic, "partitions": partitions}]),
    )


def offset_fetch(group: str, topic: str) -> Any:
    """Of partition 0."""
    schema = latest(ApiKey.OFFSET_FETCH)
    group_class = item_class(schema, "groups")
    topics = build_items(group_class, "topics", [{"name": topic, "partition_indexes": (0,)}])
    asked = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": topics}
    return build(schema, groups=build_items(schema, "groups", [asked]), require_stable=True)


def offset_delete(group: str, topic: str) -> Any:
    schema = latest(ApiKey.OFFSET_DELETE)
    partitions = build_items(item_class(schema, "topics"), "partitions", [{"partition_index": 0}])
    topics = build_items(schema, "topics", [{"name": topic, "partitions": partitions}])
    return build(schema, group_id=group, topics=topics)


class GroupClient:
    """Finds the coordinator of a group, again whenever it has moved, and sends requests until one is answered."""

    def __init__(
        self, group: str, ask: Callable[[tuple[str, int] | None, Any], Awaitable[Any]]
    ) -> None:
        """``ask`` sends a request to an address, or to (None) any broker; None if it is not answered."""
        self.group = group
        self._ask = ask
        self._coordinator: tuple[str, int] | None = None
        self.coordinator_id = -1

    async def find(self) -> None:
        while self._coordinator is None:
            response = await self._ask(None, find_coordinator(self.group))
            if response is not None and response.coordinators[0].error_code is ErrorCode.none:
                answer = response.coordinators[0]
                self._coordinator = (answer.host, answer.port)
                self.coordinator_id = answer.node_id
            else:
                await asyncio.sleep(0.1)

    async def send(self, request: Any, error_of: Callable[[Any], ErrorCode]) -> Any:
        """Return the first answer whose error does not ask for another attempt."""
        while True:
            await self.find()
            response = await self._ask(self._coordinator, request)
            if response is not None and error_of(response) not in RETRIABLE:
                return response
            self._coordinator = None
            await asyncio.sleep(0.1)

    async def join(self, member_id: str = "", instance: str | None = None) -> Any:
        """Join, under the id that the coordinator gives where it asks for that."""
        joined = await self.send(join_group(self.group, member_id, instance), error)
        if joined.error_code is ErrorCode.member_id_required:
            joined = await self.send(join_group(self.group, joined.member_id, instance), error)
        return joined

    async def sync(self, joined: Any, instance: str | None = None) -> Any:
        return await self.send(sync_group(self.group, joined, instance), error)

    async def heartbeat(self, joined: Any, instance: str | None = None) -> ErrorCode:
        response = await self.send(heartbeat(self.group, joined, instance), error)
        return error(response)

    async def commit(self, topic: str, offset: int, joined: Any = None) -> ErrorCode:
        request = offset_commit(self.group, topic, offset, joined)
        return _commit_error(await self.send(request, _commit_error))

    async def committed(self, topic: str) -> int:
        """The committed offset of partition 0."""
        response = await self.send(offset_fetch(self.group, topic), _fetch_error)
        return int(response.groups[0].topics[0].partitions[0].committed_offset)


def error(response: Any) -> ErrorCode:
    code: ErrorCode = response.error_code
    return code


def _commit_error(response: Any) -> ErrorCode:
    return error(response.topics[0].partitions[0])


def _fetch_error(response: Any) -> ErrorCode:
    return error(response.groups[0])
