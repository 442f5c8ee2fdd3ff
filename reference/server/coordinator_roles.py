"""What the roles of this broker's replicas mean for its coordinators: the last step of every change of roles.

A coordinator has the partitions of its topic that this broker leads. It gives a partition up when another broker leads
it, when the replica is deleted, and when its log has failed.

Source: kafka.server.RequestHandlerHelper.onLeadershipChange and KafkaApis (handleStopReplicaRequest,
handleUpdateMetadataRequest) of Kafka 3.9; there, a coordinator learns of a failed log from its next leader only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.model import TopicPartition


class RoleListener(Protocol):
    """Is called in the step of the change, after the partitions have their roles."""

    def on_leadership_change(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None: ...
    def on_replica_gone(self, topic_partition: TopicPartition, leader_epoch: int | None) -> None:
        """A replica is deleted or offline; without a leader epoch its topic is deleted."""

    def on_partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        """The metadata cache has partitions no longer, of any broker."""


class ElectedCoordinator(Protocol):
    """A coordinator, of the partitions that its broker leads."""

    def on_election(self, partition: int, leader_epoch: int) -> None: ...
    def on_resignation(self, partition: int, leader_epoch: int | None) -> None: ...


class CoordinatorRoles:
    """Implements ``RoleListener`` for the coordinators of topics."""

    def __init__(
        self,
        coordinators: Mapping[str, ElectedCoordinator],
        remove_offsets_of: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        """``coordinators`` are by topic."""
        self._coordinators = coordinators
        self._remove_offsets_of = remove_offsets_of

    def on_leadership_change(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        for partition in leaders:
            topic, number = partition.topic_partition
            coordinator = self._coordinators.get(topic)
            if coordinator is not None:
                coordinator.on_election(number, partition.leader_epoch)
        for partition in followers:
            self.on_replica_gone(partition.topic_partition, partition.leader_epoch)

    def on_replica_gone(self, topic_partition: TopicPartition, leader_epoch: int | None) -> None:
        coordinator = self._coordinators.get(topic_partition.topic)
        if coordinator is not None:
            coordinator.on_resignation(topic_partition.partition, leader_epoch)

    def on_partitions_deleted(self, deleted: Collection[TopicPartition]) -> None:
        self._remove_offsets_of(deleted)
