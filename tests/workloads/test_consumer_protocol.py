"""What members of a group tell each other: bytes that brokers read, too."""

from __future__ import annotations

import pytest

from nemesis.reference.coordinator.group.group_metadata import subscribed_topics
from nemesis.simulation.codec import ByReferenceCodec
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    Subscribed,
    assigned_partitions,
    assignment,
    subscribed_of,
    subscription,
)

TOPICS = ["orders-0", "orders-1"]
CODECS: list[Codec] = [wire_format, ByReferenceCodec()]


@pytest.mark.parametrize("codec", CODECS)
def test_embedded_messages_are_bytes_that_brokers_read(codec: Codec) -> None:
    partitions = [("orders-0", 1), ("orders-0", 2), ("orders-1", 0)]
    subscribed = Subscribed(tuple(TOPICS), tuple(partitions), 7, "i-1")
    data = codec.encode_embedded(subscription(subscribed))
    assert subscribed_topics(data) == frozenset(TOPICS)
    assert subscribed_of(codec.decode_embedded(data, SUBSCRIPTION), "i-1") == subscribed
    data = codec.encode_embedded(assignment(partitions))
    assert assigned_partitions(codec.decode_embedded(data, ASSIGNMENT)) == partitions


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3\0\0", b"\0\0\0\0\0\0"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ConsumerProtocolSubscription"):
        wire_format.decode_embedded(data, SUBSCRIPTION)
