"""DeleteTopics and CreatePartitions, in every version: who is dealt with, who is refused, and with which code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.topics import TopicApis
from nemesis.reference.server.zk_admin_manager import PartitionsSpec, TopicResult

TOPIC_ID = UUID(int=7)


class Office:
    """A controller that holds the office or not; it knows the topic t."""

    def __init__(self, *, is_active: bool) -> None:
        self.is_active = is_active
        self.context = ControllerContext()
        self.context.topic_names[TOPIC_ID] = "t"


class ZkAdmin:
    """Does as told, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def delete_topics(self, topics: Sequence[str], *, timeout_ms: int) -> list[TopicResult]:
        self.asked += [(name, timeout_ms) for name in topics]
        return [TopicResult(name) for name in topics]

    async def create_partitions(
        self, topics: Sequence[PartitionsSpec], *, validate_only: bool, timeout_ms: int
    ) -> list[TopicResult]:
        self.asked += [(spec, validate_only, timeout_ms) for spec in topics]
        return [TopicResult(spec.name) for spec in topics]


def apis(
    zk_admin: ZkAdmin, *, is_active: bool = True, delete_topic_enable: bool = True
) -> TopicApis:
    office: Any = Office(is_active=is_active)
    admin: Any = zk_admin
    return TopicApis(office, admin, delete_topic_enable=delete_topic_enable)


def deletion(version: int, *topics: tuple[str | None, UUID | None]) -> Any:
    schema = load_request_schema(ApiKey.DELETE_TOPICS, version)
    timeout = timedelta(seconds=3)
    if version < 6:
        return build(schema, topic_names=tuple(name for name, _ in topics), timeout=timeout)
    items = [{"name": name, "topic_id": topic_id} for name, topic_id in topics]
    return build(schema, topics=build_items(schema, "topics", items), timeout=timeout)


def answered(coming: Any) -> Any:
    """The answer after a trip over the wire."""
    response = asyncio.run(coming)
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def errors(response: Any) -> dict[Any, ErrorCode]:
    return {topic.name or topic.topic_id: topic.error_code for topic in response.responses}


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.DELETE_TOPICS].highest + 1))
def test_topics_are_deleted_by_name(version: int) -> None:
    zk_admin = ZkAdmin()
    request = deletion(version, ("t", None), ("u", None), ("v", None), ("v", None))
    response = answered(apis(zk_admin).handle_delete_topics(request))
    assert errors(response) == {
        "t": ErrorCode.none,
        "u": ErrorCode.none,
        "v": ErrorCode.invalid_request,
    }
    assert zk_admin.asked == [("t", 3000), ("u", 3000)]


def test_topics_are_deleted_by_id() -> None:
    zk_admin, unknown = ZkAdmin(), UUID(int=9)
    request = deletion(6, (None, TOPIC_ID), (None, unknown), ("u", UUID(int=8)), ("w", None))
    response = answered(apis(zk_admin).handle_delete_topics(request))
    assert errors(response) == {
        "t": ErrorCode.none,
        unknown: ErrorCode.unknown_topic_id,
        "u": ErrorCode.invalid_request,
        "w": ErrorCode.none,
    }
    topic_ids = {topic.name: topic.topic_id for topic in response.responses}
    assert (topic_ids["t"], topic_ids["w"]) == (TOPIC_ID, None)
    assert [name for name, _ in zk_admin.asked] == ["t", "w"]


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.DELETE_TOPICS].highest + 1))
def test_deletion_may_be_disabled(version: int) -> None:
    zk_admin = ZkAdmin()
    disabled = apis(zk_admin, delete_topic_enable=False)
    response = answered(disabled.handle_delete_topics(deletion(version, ("t", None))))
    expected = ErrorCode.topic_deletion_disabled if version >= 3 else ErrorCode.invalid_request
    assert errors(response) == {"t": expected}
    assert zk_admin.asked == []


def growth(version: int, *, validate_only: bool = False) -> Any:
    schema = load_request_schema(ApiKey.CREATE_PARTITIONS, version)
    topic_class = item_class(schema, "topics")
    assignments = build_items(topic_class, "assignments", [{"broker_ids": (2, 1)}])
    items = [
        {"name": "t", "count": 3, "assignments": assignments},
        {"name": "u", "count": 4, "assignments": None},
    ]
    return build(
        schema,
        topics=build_items(schema, "topics", items),
        timeout=timedelta(seconds=3),
        validate_only=validate_only,
    )


@pytest.mark.parametrize("version", range(OFFERED[ApiKey.CREATE_PARTITIONS].highest + 1))
@pytest.mark.parametrize("validate_only", [True, False])
def test_partitions_are_added(version: int, *, validate_only: bool) -> None:
    zk_admin = ZkAdmin()
    request = growth(version, validate_only=validate_only)
    response = answered(apis(zk_admin).handle_create_partitions(request))
    assert {t.name: t.error_code for t in response.results} == {"t": ErrorCode.none, "u": ErrorCode.none}  # fmt: skip
    assert zk_admin.asked == [
        (PartitionsSpec("t", 3, ((2, 1),)), validate_only, 3000),
        (PartitionsSpec("u", 4), validate_only, 3000),
    ]


def test_a_broker_that_is_not_the_controller_says_so() -> None:
    zk_admin = ZkAdmin()
    follower = apis(zk_admin, is_active=False)
    deleted = answered(follower.handle_delete_topics(deletion(6, ("u", None), (None, TOPIC_ID))))
    assert errors(deleted) == {"u": ErrorCode.not_controller, TOPIC_ID: ErrorCode.not_controller}
    grown = answered(follower.handle_create_partitions(growth(3)))
    assert {topic.error_code for topic in grown.results} == {ErrorCode.not_controller}
    assert zk_admin.asked == []
