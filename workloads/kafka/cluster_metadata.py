"""What one broker knew of the cluster when it was asked: brokers, controller, topics, leaders (Metadata 12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12 import request as metadata
from kio.schema.metadata.v12.response import MetadataResponse

ALL_TOPICS: Final = metadata.MetadataRequest(
    topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
)
"""Asks for everything that the broker knows."""


class PartitionMetadata(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicMetadata(NamedTuple):
    topic_id: UUID
    partitions: dict[int, PartitionMetadata]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What one broker knew when it was asked."""

    brokers: dict[int, tuple[str, int]] = field(default_factory=dict)
    controller_id: int = -1
    topics: dict[str, TopicMetadata] = field(default_factory=dict)

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader's id when it is known and its address too, else None."""
        if (topic_metadata := self.topics.get(topic)) is None:
            return None
        partition_metadata = topic_metadata.partitions.get(partition)
        if partition_metadata is None or partition_metadata.leader not in self.brokers:
            return None
        return partition_metadata.leader

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """Ids of the brokers that hold a replica, alive or not; the partition must be known."""
        return self.topics[topic].partitions[partition].replicas


def cluster_metadata(response: MetadataResponse) -> ClusterMetadata:
    """Read an answer; topics with an error are left out."""
    topics: dict[str, TopicMetadata] = {}
    for topic in response.topics:
        if topic.error_code is not ErrorCode.none or topic.name is None or topic.topic_id is None:
            continue
        topics[topic.name] = TopicMetadata(
            topic_id=topic.topic_id,
            partitions={
                int(p.partition_index): PartitionMetadata(
                    leader=int(p.leader_id),
                    leader_epoch=int(p.leader_epoch),
                    replicas=tuple(map(int, p.replica_nodes)),
                    isr=tuple(map(int, p.isr_nodes)),
                )
                for p in topic.partitions
            },
        )
    return ClusterMetadata(
        brokers={int(b.node_id): (b.host, int(b.port)) for b in response.brokers},
        controller_id=int(response.controller_id),
        topics=topics,
    )
