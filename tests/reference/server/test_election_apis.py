"""ElectLeaders and ControlledShutdown on the wire; the controller's own answers are the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference import model
from nemesis.reference.controller.controller_events import (
    ControlledShutdown,
    ElectionType,
    ReplicaLeaderElection,
)
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.model import ApiError, TopicPartition, UpdateMetadataPartitionState
from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.schema import build, build_items
from nemesis.reference.protocol.versions import OFFERED, ApiKey, is_offered
from nemesis.reference.server.apis.elections import ElectionApis
from nemesis.reference.server.metadata_cache import MetadataCache
from tests.reference.virtual_time import run

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def versions(key: ApiKey) -> list[int]:
    return list(range(OFFERED[key].lowest, OFFERED[key].highest + 1))


class Controller:
    """Answers every request with what it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    async def ask(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer


class Broker:
    """Knows that broker 1 leads t-0, t-1 and u-0."""

    def __init__(self, answer: Any) -> None:
        self.controller = Controller(answer)
        self.cache = MetadataCache(1)
        self.purgatory = DelayedOperationPurgatory[TopicPartition]()
        self.apis = ElectionApis(self.controller, self.cache, self.purgatory)  # type: ignore[arg-type]
        for topic_partition in (T0, T1, U0):
            self.learn(topic_partition, leader=1, leader_epoch=0)

    def learn(self, topic_partition: TopicPartition, *, leader: int, leader_epoch: int = 1) -> None:
        state = UpdateMetadataPartitionState(
            topic_partition, UUID(int=7), 1, leader, leader_epoch, (1, 2), leader_epoch, (2, 1)
        )
        self.cache.update(1, 1, [model.Broker.at(1, "a", 1), model.Broker.at(2, "b", 2)], [state])
        self.purgatory.check_and_complete(topic_partition)

    async def elect(
        self,
        partitions: Mapping[str, tuple[int, ...]] | None,
        *,
        version: int = 2,
        election_type: int = 0,
        timeout_s: float = 30,
    ) -> dict[TopicPartition, ErrorCode]:
        schema = load_request_schema(ApiKey.ELECT_LEADERS, version)
        named = None
        if partitions is not None:
            items = ({"topic": topic, "partitions": p} for topic, p in partitions.items())
            named = build_items(schema, "topic_partitions", items)
        request = build(
            schema,
            topic_partitions=named,
            election_type=election_type,
            timeout=timedelta(seconds=timeout_s),
        )
        response = over_the_wire(await self.apis.handle_elect_leaders(arrived(request)))
        return {
            TopicPartition(topic.topic, result.partition_id): result.error_code
            for topic in response.replica_election_results
            for result in topic.partition_result
        }


def arrived(request: Any) -> Any:
    frame = encode_request(request, correlation_id=1, client_id="test")
    return decode_request(frame[SIZE_BYTES:], is_offered=is_offered).message


def over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


@pytest.mark.parametrize("version", versions(ApiKey.ELECT_LEADERS))
def test_elect_leaders_in_every_version(version: int) -> None:
    async def test() -> None:
        failed = ApiError(ErrorCode.preferred_leader_not_available, "nobody")
        broker = Broker({T0: 1, T1: failed, U0: ApiError(ErrorCode.election_not_needed)})
        assert await broker.elect({"u": (0,), "t": (1, 0, 1)}, version=version) == {
            T0: ErrorCode.none,
            T1: ErrorCode.preferred_leader_not_available,
            U0: ErrorCode.election_not_needed,
        }
        (asked,) = broker.controller.asked
        assert isinstance(asked, ReplicaLeaderElection)
        assert asked.partitions == (U0, T1, T0)
        assert asked.election_type is ElectionType.PREFERRED

    run(test())


def test_who_asks_for_all_is_not_told_of_those_that_needed_none() -> None:
    async def test() -> None:
        needless = ApiError(ErrorCode.election_not_needed)
        broker = Broker({T0: 1, T1: needless, U0: needless})
        assert await broker.elect(None, election_type=1) == {T0: ErrorCode.none}
        (asked,) = broker.controller.asked
        assert asked.partitions == (T0, T1, U0)
        assert asked.election_type is ElectionType.UNCLEAN

    run(test())


def test_the_answer_waits_until_the_new_leader_is_known_here() -> None:
    async def test() -> None:
        broker = Broker({T0: 2, T1: 2})
        waiting = asyncio.ensure_future(broker.elect({"t": (0, 1)}))
        await asyncio.sleep(1)
        broker.learn(T0, leader=2)
        await asyncio.sleep(1)
        assert not waiting.done()
        broker.learn(T1, leader=2)
        assert await waiting == {T0: ErrorCode.none, T1: ErrorCode.none}
        assert asyncio.get_running_loop().time() == 2
        assert len(broker.purgatory) == 0

    run(test())


def test_a_leader_that_is_not_known_in_time_is_told_so() -> None:
    async def test() -> None:
        broker = Broker({T0: 2, T1: 1})
        results = await broker.elect({"t": (0, 1)}, timeout_s=7)
        assert results == {T0: ErrorCode.request_timed_out, T1: ErrorCode.none}
        assert asyncio.get_running_loop().time() == 7

    run(test())


def test_an_unknown_type_of_election_is_refused() -> None:
    async def test() -> None:
        broker = Broker({})
        assert await broker.elect({"t": (0,)}, election_type=2) == {T0: ErrorCode.invalid_request}
        assert broker.controller.asked == []

    run(test())


@pytest.mark.parametrize("version", versions(ApiKey.CONTROLLED_SHUTDOWN))
def test_controlled_shutdown_in_every_version(version: int) -> None:
    async def test() -> None:
        broker = Broker((ErrorCode.none, [T1, U0]))
        schema = load_request_schema(ApiKey.CONTROLLED_SHUTDOWN, version)
        request = build(schema, broker_id=2, broker_epoch=40)
        response = over_the_wire(await broker.apis.handle_controlled_shutdown(arrived(request)))
        assert response.error_code is ErrorCode.none
        remaining = [(p.topic_name, p.partition_index) for p in response.remaining_partitions]
        assert remaining == [T1, U0]
        (asked,) = broker.controller.asked
        assert isinstance(asked, ControlledShutdown)
        assert (asked.broker_id, asked.broker_epoch) == (2, 40 if version >= 2 else -1)

    run(test())


def test_a_refused_shutdown_tells_why() -> None:
    async def test() -> None:
        broker = Broker((ErrorCode.stale_controller_epoch, []))
        request = build(load_request_schema(ApiKey.CONTROLLED_SHUTDOWN, 3), broker_id=2)
        response = over_the_wire(await broker.apis.handle_controlled_shutdown(request))
        assert response.error_code is ErrorCode.stale_controller_epoch
        assert response.remaining_partitions == ()

    run(test())
