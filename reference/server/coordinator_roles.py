"""What the roles of this broker's replicas mean for its coordinators: the last step of every change of roles.

A coordinator has the partitions of its topic that this broker leads. It gives a partition up when another broker leads
it, when the replica is deleted, and when its log has failed.

Source: kafka.server.RequestHandlerHelper.onLeadershipChange and KafkaApis (handleStopReplicaRequest,
handleUpdateMetadataRequest) of Kafka 3.9; there, a coordinator learns of a failed log from its next leader only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.coordinator.group.group_coordinator import GroupCoordinator
from nemesis.reference.model import GROUP_METADATA_TOPIC_NAME, TopicPartition


class RoleListener(Protocol):
    """Is called in the step of the change, after the partitions have their roles."""

    def on_leadership_change(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None: ...
    def on_replica_gone(self, topic_partition: TopicPartition, leader_epoch: int | None) -> None:
        """A replica is deleted or offline; without a leader epoch its topic is deleted."""

    def on_partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        """The metadata cache has partitions no longer, of any broker."""


class CoordinatorRoles:
    """Implements ``RoleListener`` for the group coordinator."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def on_leadership_change(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        for partition in leaders:
            if partition.topic_partition.topic == GROUP_METADATA_TOPIC_NAME:
                number = partition.topic_partition.partition
                self._groups.on_election(number, partition.leader_epoch)
        for partition in followers:
            self.on_replica_gone(partition.topic_partition, partition.leader_epoch)

    def on_replica_gone(self, topic_partition: TopicPartition, leader_epoch: int | None) -> None:
        if topic_partition.topic == GROUP_METADATA_TOPIC_NAME:
            self._groups.on_resignation(topic_partition.partition, leader_epoch)

    def on_partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        self._groups.remove_offsets_of(deleted)
