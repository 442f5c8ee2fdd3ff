"""Markers on their way to leaders: one request at a time for each broker, and an answer for each partition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.transaction.transaction_completions import (
    MarkerErrors,
    TransactionMarker,
)
from nemesis.reference.model import Broker, TopicPartition, UpdateMetadataPartitionState
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.protocol.schema import build, build_items, item_class, response_class
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from tests.reference.cluster.hosting import config
from tests.reference.virtual_time import run

LED, ALSO_LED, LEADERLESS = (TopicPartition("t", number) for number in range(3))
LEADER = 2


class Leader:
    """Answers each request after a second with the errors of the test; None: the connection breaks."""

    def __init__(self) -> None:
        self.errors: dict[TopicPartition, ErrorCode] | None = {}
        self.requests: list[Any] = []
        self.is_closed = False

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        assert (host, port, timeout_s) == ("b", 92, 30)
        self.requests.append(request)
        await asyncio.sleep(1)
        if self.errors is None:
            raise NetworkError("broken", definite=False)
        response = response_class(type(request))
        marker_class = item_class(response, "markers")
        topic_class = item_class(marker_class, "topics")
        markers = []
        for marker in request.markers:
            (topic,) = marker.topics
            items = [
                {
                    "partition_index": number,
                    "error_code": self.errors.get(TopicPartition("t", number), ErrorCode.none),
                }
                for number in topic.partition_indexes
            ]
            partitions = build_items(topic_class, "partitions", items)
            topics = build_items(marker_class, "topics", [{"name": "t", "partitions": partitions}])
            markers.append({"producer_id": marker.producer_id, "topics": topics})
        return build(response, markers=build_items(response, "markers", markers))

    async def close(self) -> None:
        self.is_closed = True


class Sending:
    """Broker 1, which knows a leader for two of three partitions."""

    def __init__(self, directory: Path) -> None:
        self.leader = Leader()
        self.answers: list[MarkerErrors] = []
        cache = MetadataCache(1)
        states = [
            UpdateMetadataPartitionState(key, UUID(int=7), 1, leader, 0, (leader,), 0, (leader,))
            for key, leader in ((LED, LEADER), (ALSO_LED, LEADER), (LEADERLESS, -1))
        ]
        cache.update(1, 1, [Broker.at(1, "a", 91), Broker.at(LEADER, "b", 92)], states)
        self.channels = TransactionMarkerChannelManager(
            config(directory), metadata_cache=cache, connect=lambda _: self.leader
        )

    def send(self, producer_id: int, *keys: TopicPartition) -> None:
        marker = TransactionMarker(producer_id, 3, 5, True)
        self.channels.send(marker, keys, self.answers.append)


def on_sending(directory: Path, scenario: Callable[[Sending], Awaitable[None]]) -> None:
    async def main() -> None:
        sending = Sending(directory)
        await scenario(sending)
        await sending.channels.shutdown()
        assert sending.leader.is_closed is bool(sending.leader.requests)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_what_comes_during_a_request_goes_with_the_next_one(tmp_path: Path) -> None:
    async def scenario(sending: Sending) -> None:
        sending.send(7, LED, ALSO_LED)
        await asyncio.sleep(0.1)
        sending.send(8, LED)
        sending.send(9, ALSO_LED)
        await asyncio.sleep(3)
        first, second = sending.leader.requests
        assert [marker.producer_id for marker in first.markers] == [7]
        assert [marker.producer_id for marker in second.markers] == [8, 9]
        (marker,) = first.markers
        assert (marker.producer_epoch, marker.coordinator_epoch) == (3, 5)
        assert marker.transaction_result is True
        none = ErrorCode.none
        assert sending.answers == [{LED: none, ALSO_LED: none}, {LED: none}, {ALSO_LED: none}]

    on_sending(tmp_path, scenario)


def test_each_partition_has_its_error(tmp_path: Path) -> None:
    async def scenario(sending: Sending) -> None:
        sending.leader.errors = {LED: ErrorCode.not_enough_replicas}
        sending.send(7, LED, ALSO_LED)
        await asyncio.sleep(2)
        sending.leader.errors = None
        sending.send(7, LED)
        await asyncio.sleep(2)
        assert sending.answers == [
            {LED: ErrorCode.not_enough_replicas, ALSO_LED: ErrorCode.none},
            {LED: ErrorCode.network_exception},
        ]

    on_sending(tmp_path, scenario)


def test_without_a_leader_nothing_is_sent(tmp_path: Path) -> None:
    async def scenario(sending: Sending) -> None:
        assert sending.channels.exists(LEADERLESS)
        assert not sending.channels.exists(TopicPartition("u", 0))
        sending.send(7, LEADERLESS)
        assert sending.answers == []
        await asyncio.sleep(1)
        assert sending.answers == [{LEADERLESS: ErrorCode.leader_not_available}]
        assert sending.leader.requests == []

    on_sending(tmp_path, scenario)


def test_a_broker_that_stops_waits_for_no_answer(tmp_path: Path) -> None:
    async def scenario(sending: Sending) -> None:
        sending.send(7, LED)
        await asyncio.sleep(0.5)

    on_sending(tmp_path, scenario)
