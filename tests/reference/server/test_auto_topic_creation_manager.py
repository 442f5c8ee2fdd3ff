"""Topics created by being asked for: by the controller's broker itself, through the controller elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.model import Broker
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.apis.conversion import NO_THROTTLE
from nemesis.reference.server.auto_topic_creation_manager import AutoTopicCreationManager
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.zk_admin_manager import TopicResult, TopicSpec
from tests.reference.controller.cluster import config


class ControllerConnection:
    """The way to the controller: keeps what was sent, answers when it is let."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int, list[str]]] = []
        self.let = asyncio.Event()
        self.let.set()
        self.error: NetworkError | None = None

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        self.sent.append((host, port, [topic.name for topic in request.topics]))
        await self.let.wait()
        if self.error is not None:
            raise self.error
        results = tuple(
            CreatableTopicResult(
                name=topic.name,
                topic_id=UUID(int=1),
                error_code=ErrorCode.none,
                error_message=None,
                configs=(),
            )
            for topic in request.topics
        )
        return CreateTopicsResponse(throttle_time=NO_THROTTLE, topics=results)  # type: ignore[arg-type]

    async def close(self) -> None:
        pass


class ZkAdmin:
    """Answers CreateTopics as told, by name."""

    def __init__(self, **errors: ErrorCode) -> None:
        self.errors = errors
        self.created: list[str] = []

    async def create_topics(
        self, topics: Sequence[TopicSpec], *, validate_only: bool, timeout_ms: int
    ) -> list[TopicResult]:
        assert (validate_only, timeout_ms) == (False, 0)
        self.created += [spec.name for spec in topics]
        error = ErrorCode.request_timed_out
        return [TopicResult(spec.name, self.errors.get(spec.name, error)) for spec in topics]


class Office:
    def __init__(self, *, is_active: bool) -> None:
        self.is_active = is_active


def manager(
    zk_admin: ZkAdmin, connection: ControllerConnection, *, is_controller: bool
) -> AutoTopicCreationManager:
    cache = MetadataCache(1)
    cache.update(2, 1, [Broker.at(1, "a", 91), Broker.at(2, "b", 92)], [])
    controller: KafkaController = Office(is_active=is_controller)  # type: ignore[assignment]
    return AutoTopicCreationManager(
        config(1),
        controller=controller,
        zk_admin=zk_admin,  # type: ignore[arg-type]
        metadata_cache=cache,
        connection=connection,
    )


def test_the_controllers_broker_creates_them_itself() -> None:
    async def test() -> None:
        zk_admin = ZkAdmin(u=ErrorCode.topic_already_exists, v=ErrorCode.invalid_replication_factor)
        connection = ControllerConnection()
        codes = await manager(zk_admin, connection, is_controller=True).create_topics("tuv")
        assert codes == {
            "t": ErrorCode.leader_not_available,
            "u": ErrorCode.leader_not_available,
            "v": ErrorCode.invalid_replication_factor,
        }
        assert (zk_admin.created, connection.sent) == (["t", "u", "v"], [])

    asyncio.run(test())


def test_another_broker_asks_the_controller_once() -> None:
    async def test() -> None:
        zk_admin, connection = ZkAdmin(), ControllerConnection()
        connection.let.clear()
        creation = manager(zk_admin, connection, is_controller=False)
        for names in (["t"], ["t", "u"]):
            codes = await creation.create_topics(names)
            assert codes == dict.fromkeys(names, ErrorCode.unknown_topic_or_partition)
        await asyncio.sleep(0)
        connection.let.set()
        while creation._forwarding:
            await asyncio.sleep(0)
        assert connection.sent == [("b", 92, ["t"]), ("b", 92, ["u"])]
        # Done: who asks now wants it anew, for instance because it was deleted meanwhile.
        await creation.create_topics(["t"])
        while creation._forwarding:
            await asyncio.sleep(0)
        assert connection.sent[-1] == ("b", 92, ["t"])
        assert zk_admin.created == []
        await creation.shutdown()

    asyncio.run(test())


def test_a_controller_that_does_not_answer_is_asked_again_when_the_client_asks_again() -> None:
    async def test() -> None:
        connection = ControllerConnection()
        connection.error = NetworkError("lost", definite=False)
        creation = manager(ZkAdmin(), connection, is_controller=False)
        for _ in range(2):
            await creation.create_topics(["t"])
            while creation._forwarding:
                await asyncio.sleep(0)
        assert len(connection.sent) == 2
        await creation.shutdown()

    asyncio.run(test())


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_name_that_cannot_be_is_refused_at_once(*, is_controller: bool) -> None:
    async def test() -> None:
        zk_admin, connection = ZkAdmin(), ControllerConnection()
        creation = manager(zk_admin, connection, is_controller=is_controller)
        codes = await creation.create_topics(["a/b", ".."])
        assert set(codes.values()) == {ErrorCode.invalid_topic_exception}
        assert (zk_admin.created, connection.sent) == ([], [])
        await creation.shutdown()

    asyncio.run(test())
