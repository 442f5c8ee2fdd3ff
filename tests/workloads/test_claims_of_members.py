"""A member and a scripted coordinator: what answers mean for its membership, its claims and its next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4 import response as heartbeat
from kio.schema.join_group.v9 import response as join_group
from kio.schema.sync_group.v5 import response as sync_group
from kio.static.primitive import i32, i32Timedelta

from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.assignors import COOPERATIVE_STICKY
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.consumer_coordinator import NO_MEMBER, ConsumerCoordinator
from nemesis.workloads.kafka.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    Subscribed,
    TopicPartition,
    assigned_partitions,
    assignment,
    subscribed_of,
    subscription,
)
from nemesis.workloads.kafka.errors import BrokerError

NO_TIME = i32Timedelta.parse(timedelta(0))
TOPICS = ("t", "u")


class Client:
    """A client whose coordinator answers what a test has prepared."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.answers: list[Any] = []
        self.requests: list[Any] = []
        self.counts = counts

    @property
    def metadata(self) -> Any:
        topics = {
            topic: SimpleNamespace(partitions=range(count)) for topic, count in self.counts.items()
        }
        return SimpleNamespace(topics=topics)

    async def refresh_metadata(self) -> bool:
        return True

    async def request_coordinator(self, node: int, request: Any, timeout_s: float) -> Any:
        del node, timeout_s
        self.requests.append(request)
        return self.answers.pop(0)

    def claimed(self) -> Subscribed:
        """What the last JoinGroup has stated."""
        data = self.requests[-1].protocols[0].metadata
        return subscribed_of(wire_format.decode_embedded(data, SUBSCRIPTION), None)

    def assigned(self) -> dict[str, list[TopicPartition]]:
        """What the last SyncGroup has assigned."""
        return {
            item.member_id: assigned_partitions(
                wire_format.decode_embedded(item.assignment, ASSIGNMENT)
            )
            for item in self.requests[-1].assignments
        }


def joined(
    generation: int, *members: str, skip_assignment: bool = False
) -> join_group.JoinGroupResponse:
    """The answer to member m; it leads if there are members."""
    metadata = wire_format.encode_embedded(subscription(Subscribed(TOPICS)))
    return join_group.JoinGroupResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        generation_id=i32(generation),
        protocol_name="cooperative-sticky",
        leader="m" if members else "other",
        skip_assignment=skip_assignment,
        member_id="m",
        members=tuple(
            join_group.JoinGroupResponseMember(member_id=member, metadata=metadata)
            for member in members
        ),
    )


def synced(*partitions: TopicPartition) -> sync_group.SyncGroupResponse:
    return sync_group.SyncGroupResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        assignment=wire_format.encode_embedded(assignment(partitions)),
    )


def refused(error: ErrorCode) -> heartbeat.HeartbeatResponse:
    return heartbeat.HeartbeatResponse(throttle_time=NO_TIME, error_code=error)


def changes(member: ConsumerCoordinator) -> list[bool]:
    return [member.has_to_assign_again]


def run(scenario: Callable[[ConsumerCoordinator, Client], Any], **counts: int) -> None:
    client = Client(counts or {"t": 2, "u": 1})
    member = ConsumerCoordinator(
        cast("KafkaClient", client),
        "g",
        TOPICS,
        instance="i",
        assignor=COOPERATIVE_STICKY,
        session_timeout_ms=1000,
        rebalance_timeout_ms=1000,
    )
    asyncio.run(scenario(member, client))


def test_a_member_claims_what_its_last_assignment_gave_and_when() -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4), synced(("t", 0), ("u", 0)), joined(5)]
        await member.join(1)
        assert client.claimed() == Subscribed(TOPICS)
        await member.sync(1)
        await member.join(1)
        assert client.claimed() == Subscribed(TOPICS, (("t", 0), ("u", 0)), 4)
        # The assignment of generation 5 is missed: the claim is still that of 4.
        client.answers = [joined(6)]
        await member.join(1)
        assert client.claimed().generation == 4

    run(scenario)


def test_what_is_not_subscribed_to_any_longer_is_not_claimed() -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4), synced(("t", 0), ("u", 0)), joined(5)]
        await member.join(1)
        await member.sync(1)
        member.subscribe(["u"])
        assert not member.is_assigned
        await member.join(1)
        assert client.claimed() == Subscribed(("u",), (("u", 0),), 4)

    run(scenario)


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.illegal_generation, "m"), (ErrorCode.unknown_member_id, NO_MEMBER)],
)
def test_a_member_whose_generation_has_ended_claims_nothing(
    error: ErrorCode, member_id: str
) -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4, "m"), synced(("t", 0)), refused(error), joined(9)]
        await member.join(1)
        await member.sync(1)
        with pytest.raises(BrokerError):
            await member.heartbeat(1)
        assert (member.member_id, member.is_fenced) == (member_id, False)
        assert changes(member) == [False]
        await member.join(1)
        assert client.claimed() == Subscribed(TOPICS)

    run(scenario)


def test_a_fenced_member_knows_it() -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4), synced(), refused(ErrorCode.fenced_instance_id)]
        await member.join(1)
        await member.sync(1)
        with pytest.raises(BrokerError):
            await member.heartbeat(1)
        assert client.requests[-1].group_instance_id == "i"
        assert member.is_fenced

    run(scenario)


def test_a_leader_assigns_again_when_the_partitions_have_changed() -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4, "m", "n"), synced(("t", 0))]
        await member.join(1)
        await member.sync(1)
        assert client.assigned() == {"m": [("t", 0), ("u", 0)], "n": [("t", 1)]}
        assert changes(member) == [False]
        client.counts["t"] = 3
        assert changes(member) == [True]
        client.answers = [joined(5)]
        await member.join(1)
        assert changes(member) == [False], "another member leads"

    run(scenario)


def test_a_static_leader_that_comes_back_assigns_nothing_and_watches_the_partitions() -> None:
    async def scenario(member: ConsumerCoordinator, client: Client) -> None:
        client.answers = [joined(4, "m", "n", skip_assignment=True), synced(("t", 1))]
        assert await member.join(1) == 2
        assert await member.sync(1) == [("t", 1)]
        assert client.assigned() == {}
        assert changes(member) == [False]
        client.counts["u"] = 2
        assert changes(member) == [True]

    run(scenario)
