"""The partitions that a workload uses, and how histories name them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from nemesis.workloads.kafka.client import KafkaClient

TopicPartition = tuple[str, int]
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})

topic_id_text = lru_cache(maxsize=1024)(str)
"""A topic id as histories spell it. Each event has a topic id, and spelling a UUID takes time."""


def partition_columns(client: KafkaClient, tp: TopicPartition) -> dict[str, Any]:
    """Return the columns of an event about a partition; the topic id is the one that the client knows."""
    metadata = client.metadata.topics.get(tp[0])
    return {
        "topic": tp[0],
        "partition": tp[1],
        "topic_id": None if metadata is None else topic_id_text(metadata.topic_id),
    }


class KnownPartitions:
    """The partitions that clients send to and read from, in the order in which they became known."""

    def __init__(self) -> None:
        self.known: list[TopicPartition] = []

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Add partitions; known ones keep their position. Those of internal topics are left out: brokers write them."""
        self.known.extend(
            [tp for tp in partitions if tp not in self.known and tp[0] not in INTERNAL_TOPICS]
        )

    def add_existing(self, client: KafkaClient) -> None:
        """Add every partition of the client's metadata."""
        for topic, metadata in sorted(client.metadata.topics.items()):
            self.add([(topic, partition) for partition in sorted(metadata.partitions)])

    def remove_absent(self, client: KafkaClient) -> None:
        """Remove the partitions that the client's metadata does not have."""
        topics = client.metadata.topics
        self.known = [
            tp for tp in self.known if tp[0] in topics and tp[1] in topics[tp[0]].partitions
        ]

    def remove_topic(self, topic: str) -> None:
        """Remove the partitions of a topic."""
        self.known = [tp for tp in self.known if tp[0] != topic]
