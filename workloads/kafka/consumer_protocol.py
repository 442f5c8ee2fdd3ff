"""What the members of a group of consumers tell each other: subscriptions and assignments, and the assignor `range`.

The coordinator stores these messages as bytes. Members put them into JoinGroup and SyncGroup requests and take them
out of the answers; the client's codec turns them into bytes and back.

Source: ConsumerProtocol and RangeAssignor of Kafka 3.9's clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from kio.schema.consumer_protocol_assignment.v3 import data as assignments
from kio.schema.consumer_protocol_subscription.v3 import data as subscriptions
from kio.schema.types import TopicName
from kio.static.primitive import i32

PROTOCOL_TYPE: Final = "consumer"
RANGE: Final = "range"

TopicPartition = tuple[str, int]
SUBSCRIPTION: Final = subscriptions.ConsumerProtocolSubscription
ASSIGNMENT: Final = assignments.ConsumerProtocolAssignment


def subscription(topics: Iterable[str]) -> subscriptions.ConsumerProtocolSubscription:
    """Return the subscription of a member that owns nothing when it joins."""
    return SUBSCRIPTION(topics=tuple(topics), owned_partitions=())


def assignment(
    partitions: Iterable[TopicPartition],
) -> assignments.ConsumerProtocolAssignment:
    """Return the message that assigns these partitions to a member."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return ASSIGNMENT(
        assigned_partitions=tuple(
            assignments.TopicPartition(
                topic=cast("TopicName", topic),
                partitions=cast("tuple[i32, ...]", tuple(numbers)),
            )
            for topic, numbers in by_topic.items()
        )
    )


def assigned_partitions(message: Any) -> list[TopicPartition]:
    """Return the partitions that an assignment names."""
    return [
        (str(topic.topic), int(number))
        for topic in message.assigned_partitions
        for number in topic.partitions
    ]


def assign_ranges(
    topics_of: Mapping[str, Iterable[str]], partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member: of each topic a range, the first members one more than the last.

    ``topics_of``: by member id the topics to which it subscribes. Topics without a partition count are left out.
    """
    assigned: dict[str, list[TopicPartition]] = {member: [] for member in topics_of}
    for topic, count in sorted(partition_counts.items()):
        members = sorted(member for member, topics in topics_of.items() if topic in topics)
        if not members:
            continue
        share, rest = divmod(count, len(members))
        first = 0
        for index, member in enumerate(members):
            end = first + share + (index < rest)
            assigned[member] += [(topic, number) for number in range(first, end)]
            first = end
    return assigned
