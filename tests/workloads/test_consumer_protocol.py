"""What members of a group tell each other: the assignor, and the bytes, which brokers read, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.coordinator.group.group_metadata import subscribed_topics
from nemesis.simulation.codec import ByReferenceCodec
from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    assign_ranges,
    assigned_partitions,
    assignment,
    subscription,
)

TOPICS = ["orders-0", "orders-1"]
CODECS: list[Codec] = [wire_format, ByReferenceCodec()]


def test_the_first_members_get_one_partition_more() -> None:
    assigned = assign_ranges({"b": TOPICS, "a": TOPICS}, {"orders-0": 3, "orders-1": 1})
    assert assigned == {
        "a": [("orders-0", 0), ("orders-0", 1), ("orders-1", 0)],
        "b": [("orders-0", 2)],
    }


def test_a_topic_is_assigned_to_those_that_subscribe_to_it() -> None:
    assigned = assign_ranges({"a": ["orders-1"], "b": []}, {"orders-0": 2, "orders-1": 2})
    assert assigned == {"a": [("orders-1", 0), ("orders-1", 1)], "b": []}


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.lists(st.sampled_from(TOPICS))),
    st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9)),
)
def test_each_partition_of_a_subscribed_topic_has_one_owner(
    topics_of: dict[str, list[str]], counts: dict[str, int]
) -> None:
    assigned = assign_ranges(topics_of, counts)
    owned = sorted(tp for partitions in assigned.values() for tp in partitions)
    subscribed = {topic for topics in topics_of.values() for topic in topics}
    assert owned == sorted(
        (topic, number)
        for topic in counts
        if topic in subscribed
        for number in range(counts[topic])
    )
    for topic in counts:
        shares = [
            sum(tp[0] == topic for tp in assigned[member])
            for member, topics in topics_of.items()
            if topic in topics
        ]
        assert not shares or max(shares) - min(shares) <= 1


@pytest.mark.parametrize("codec", CODECS)
def test_embedded_messages_are_bytes_that_brokers_read(codec: Codec) -> None:
    data = codec.encode_embedded(subscription(TOPICS))
    assert subscribed_topics(data) == frozenset(TOPICS)
    assert codec.decode_embedded(data, SUBSCRIPTION) == subscription(TOPICS)
    partitions = [("orders-0", 1), ("orders-0", 2), ("orders-1", 0)]
    data = codec.encode_embedded(assignment(partitions))
    assert assigned_partitions(codec.decode_embedded(data, ASSIGNMENT)) == partitions


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3\0\0", b"\0\0\0\0\0\0"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="ConsumerProtocolSubscription"):
        wire_format.decode_embedded(data, SUBSCRIPTION)
