"""The replicas that this broker serves, and those that it cannot serve because their log failed."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.model import TopicPartition
from nemesis.reference.server.metadata_cache import MetadataCache


class HostedPartitions:
    """Partitions by topic and number. The metadata cache tells a foreign partition from an unknown one."""

    def __init__(self, metadata_cache: MetadataCache) -> None:
        self._metadata_cache = metadata_cache
        self.partitions: dict[TopicPartition, Partition] = {}
        """The served replicas."""
        self.offline: set[TopicPartition] = set()
        """Replicas whose log failed; they stay here until the broker restarts."""

    def is_hosted(self, topic_partition: TopicPartition) -> bool:
        """Return whether this process serves the replica."""
        return topic_partition in self.partitions

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return the served replica; raises ReplicaError with the error code for the client."""
        partition = self.partitions.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self.offline:
            raise ReplicaError(ErrorCode.kafka_storage_error, f"{topic_partition} is offline")
        if self._metadata_cache.contains(topic_partition):
            raise ReplicaError(
                ErrorCode.not_leader_or_follower, f"{topic_partition} is not hosted here"
            )
        raise ReplicaError(
            ErrorCode.unknown_topic_or_partition, f"{topic_partition} is not known here"
        )
