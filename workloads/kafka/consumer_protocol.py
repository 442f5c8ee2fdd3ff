"""What the members of a group of consumers tell each other: subscriptions and assignments.

The coordinator stores these messages as bytes. Members put them into JoinGroup and SyncGroup requests and take them
out of the answers; the client's codec turns them into bytes and back.

Source: ConsumerProtocol of Kafka 3.9's clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from kio.schema.consumer_protocol_assignment.v3 import data as assignments
from kio.schema.consumer_protocol_subscription.v3 import data as subscriptions
from kio.schema.types import TopicName
from kio.static.primitive import i32

PROTOCOL_TYPE: Final = "consumer"

TopicPartition = tuple[str, int]
SUBSCRIPTION: Final = subscriptions.ConsumerProtocolSubscription
ASSIGNMENT: Final = assignments.ConsumerProtocolAssignment


class Subscribed(NamedTuple):
    """What a member states when it joins."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that it claims, because it has not given them up."""
    generation: int = -1
    """The generation that assigned them; −1: it claims nothing."""
    instance: str | None = None
    """The instance id of a static member; JoinGroup states it, beside the subscription."""


def subscription(subscribed: Subscribed) -> subscriptions.ConsumerProtocolSubscription:
    """Return the message that states it."""
    return SUBSCRIPTION(
        topics=subscribed.topics,
        owned_partitions=tuple(
            subscriptions.TopicPartition(
                topic=cast("TopicName", topic), partitions=cast("tuple[i32, ...]", numbers)
            )
            for topic, numbers in _by_topic(subscribed.owned).items()
        ),
        generation_id=cast("i32", subscribed.generation),
    )


def subscribed_of(message: Any, instance: str | None) -> Subscribed:
    """Return what a member has stated."""
    return Subscribed(
        tuple(map(str, message.topics)),
        tuple(
            (str(topic.topic), int(number))
            for topic in message.owned_partitions
            for number in topic.partitions
        ),
        int(message.generation_id),
        instance,
    )


def assignment(
    partitions: Iterable[TopicPartition],
) -> assignments.ConsumerProtocolAssignment:
    """Return the message that assigns these partitions to a member."""
    return ASSIGNMENT(
        assigned_partitions=tuple(
            assignments.TopicPartition(
                topic=cast("TopicName", topic), partitions=cast("tuple[i32, ...]", numbers)
            )
            for topic, numbers in _by_topic(partitions).items()
        )
    )


def assigned_partitions(message: Any) -> list[TopicPartition]:
    """Return the partitions that an assignment names."""
    return [
        (str(topic.topic), int(number))
        for topic in message.assigned_partitions
        for number in topic.partitions
    ]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in by_topic.items()}
