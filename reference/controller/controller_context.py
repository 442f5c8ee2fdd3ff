"""What the controller knows: brokers, topics, assignments, leadership, and the states of partitions and replicas.

Nothing but memory: filled from ZooKeeper at failover, kept up by the events, forgotten at resignation. Only the task of
the controller's event queue touches it. Everything that is iterated comes in a fixed order, so that the same events
lead to the same requests. Source: kafka.controller.ControllerContext.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from nemesis.reference.controller.errors import IllegalStateError
from nemesis.reference.model import NO_LEADER, Broker, TopicPartition
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.zk_data import (
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicAssignment,
)

NO_ASSIGNMENT = ReplicaAssignment(())


class PartitionState(Enum):
    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistent"
    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    DELETION_STARTED = "DeletionStarted"
    DELETION_SUCCESSFUL = "DeletionSuccessful"
    DELETION_INELIGIBLE = "DeletionIneligible"


@dataclass(frozen=True, slots=True, order=True)
class PartitionAndReplica:
    topic_partition: TopicPartition
    replica: int

    def __str__(self) -> str:
        return f"{self.topic_partition} on broker {self.replica}"


class ControllerContext:
    """See the module. ``fence`` is None unless this broker holds the office."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, as a resigned controller must."""
        self.fence: ControllerFence | None = None
        self.live_brokers: dict[int, Broker] = {}
        self.live_broker_epochs: dict[int, int] = {}
        self.shutting_down_broker_ids: set[int] = set()
        self.all_topics: list[str] = []
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self.assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self._partitions_of_topic: dict[str, dict[TopicPartition, None]] = {}
        self.partitions_being_reassigned: dict[TopicPartition, None] = {}
        """A set that keeps its order."""
        self.leadership: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replica_states: dict[PartitionAndReplica, ReplicaState] = {}
        self.replicas_on_offline_dirs: dict[int, set[TopicPartition]] = {}
        self.topics_to_be_deleted: dict[str, None] = {}
        """Queued for deletion; a set that keeps its order, as the two that follow."""
        self.topics_with_deletion_started: dict[str, None] = {}
        self.topics_ineligible_for_deletion: dict[str, None] = {}
        """Queued, but a replica is offline or a partition is being reassigned."""

    @property
    def epoch(self) -> int:
        """The controller epoch of the present term; 0 when there is none."""
        return 0 if self.fence is None else self.fence.controller_epoch

    def required_fence(self) -> ControllerFence:
        """Return the fence; raises ``IllegalStateError`` when this broker is not the controller."""
        if self.fence is None:
            raise IllegalStateError(
                "a controller's write: expected the office of controller, got none"
            )
        return self.fence

    # Brokers

    def set_live_brokers(self, brokers_and_epochs: Mapping[Broker, int]) -> None:
        self.live_brokers = {}
        self.live_broker_epochs = {}
        self.add_live_brokers(brokers_and_epochs)

    def add_live_brokers(self, brokers_and_epochs: Mapping[Broker, int]) -> None:
        for broker, epoch in brokers_and_epochs.items():
            self.live_brokers[broker.id] = broker
            self.live_broker_epochs[broker.id] = epoch

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            self.live_brokers.pop(broker_id, None)
            self.live_broker_epochs.pop(broker_id, None)

    @property
    def live_or_shutting_down_broker_ids(self) -> list[int]:
        return sorted(self.live_brokers)

    @property
    def live_broker_ids(self) -> list[int]:
        return [b for b in sorted(self.live_brokers) if b not in self.shutting_down_broker_ids]

    def is_replica_online(
        self,
        broker_id: int,
        topic_partition: TopicPartition,
        *,
        include_shutting_down: bool = False,
    ) -> bool:
        if broker_id not in self.live_brokers:
            return False
        if not include_shutting_down and broker_id in self.shutting_down_broker_ids:
            return False
        return topic_partition not in self.replicas_on_offline_dirs.get(broker_id, ())

    # Topics and partitions

    def add_topic(self, assignment: TopicAssignment) -> list[TopicPartition]:
        """Take over a topic's assignment, or the partitions that were added to it; returns those that it names."""
        if assignment.topic_id is not None:
            self.topic_ids[assignment.topic] = assignment.topic_id
            self.topic_names[assignment.topic_id] = assignment.topic
        partitions = []
        for number, replicas in assignment.partitions.items():
            topic_partition = TopicPartition(assignment.topic, number)
            self.assignments[topic_partition] = replicas
            if replicas.is_being_reassigned:
                self.partitions_being_reassigned[topic_partition] = None
            partitions.append(topic_partition)
        known = self._partitions_of_topic.setdefault(assignment.topic, {})
        known.update(dict.fromkeys(partitions))
        return partitions

    def remove_topic(self, topic: str) -> None:
        """Forget the topic and that it was to be deleted: the name may come back as another topic."""
        if topic in self.all_topics:
            self.all_topics.remove(topic)
        self.topics_to_be_deleted.pop(topic, None)
        self.topics_with_deletion_started.pop(topic, None)
        self.topics_ineligible_for_deletion.pop(topic, None)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for topic_partition in self._partitions_of_topic.pop(topic, {}):
            for replica in self.assignments.pop(topic_partition).replicas:
                self.replica_states.pop(PartitionAndReplica(topic_partition, replica), None)
            self.leadership.pop(topic_partition, None)
            self.partition_states.pop(topic_partition, None)
            self.partitions_being_reassigned.pop(topic_partition, None)

    def assignment(self, topic_partition: TopicPartition) -> ReplicaAssignment:
        """Empty for an unknown partition."""
        return self.assignments.get(topic_partition, NO_ASSIGNMENT)

    def topic_id_of(self, topic_partition: TopicPartition) -> UUID | None:
        return self.topic_ids.get(topic_partition.topic)

    def replicas_on_brokers(self, broker_ids: Iterable[int]) -> list[PartitionAndReplica]:
        wanted = set(broker_ids)
        return [
            PartitionAndReplica(topic_partition, replica)
            for topic_partition, assignment in self.assignments.items()
            for replica in assignment.replicas
            if replica in wanted
        ]

    def replicas_for_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[PartitionAndReplica]:
        return [
            PartitionAndReplica(topic_partition, replica)
            for topic_partition in partitions
            for replica in self.assignment(topic_partition).replicas
        ]

    def partitions_for_topic(self, topic: str) -> list[TopicPartition]:
        """Empty for an unknown topic."""
        return list(self._partitions_of_topic.get(topic, ()))

    def replicas_for_topic(self, topic: str) -> list[PartitionAndReplica]:
        return self.replicas_for_partitions(self.partitions_for_topic(topic))

    def leader(self, topic_partition: TopicPartition) -> int:
        """The leader's broker id; −1 when there is none, or no state."""
        state = self.leadership.get(topic_partition)
        return NO_LEADER if state is None else state.leader_and_isr.leader

    def preferred_replica(self, topic_partition: TopicPartition) -> int | None:
        """The first of the assignment; None for an unknown partition."""
        return next(iter(self.assignment(topic_partition).replicas), None)

    def has_online_leader(self, topic_partition: TopicPartition) -> bool:
        state = self.leadership.get(topic_partition)
        if state is None or state.leader_and_isr.leader == NO_LEADER:
            return False
        return self.is_replica_online(state.leader_and_isr.leader, topic_partition)

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Those that have a state whose leader is not online, or that have none (−1); not of topics being deleted."""
        return [tp for tp in self.partitions_with_leaders() if not self.has_online_leader(tp)]

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """Those that have a state, but for those of topics that are being deleted."""
        return [tp for tp in self.leadership if not self.is_topic_being_deleted(tp.topic)]

    # Topics to be deleted

    def queue_topic_deletion(self, topics: Iterable[str]) -> None:
        self.topics_to_be_deleted.update(dict.fromkeys(topics))

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def is_topic_being_deleted(self, topic: str) -> bool:
        """Whether it lives no longer: it is queued and does not wait for a reassignment, which needs it alive."""
        return topic in self.topics_to_be_deleted and not any(
            tp.topic == topic for tp in self.partitions_being_reassigned
        )

    # States

    def partition_state(self, topic_partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(topic_partition, PartitionState.NON_EXISTENT)

    def put_partition_state(self, topic_partition: TopicPartition, state: PartitionState) -> None:
        if state is PartitionState.NON_EXISTENT:
            self.partition_states.pop(topic_partition, None)
        else:
            self.partition_states[topic_partition] = state

    def partitions_in_states(self, states: Iterable[PartitionState]) -> list[TopicPartition]:
        wanted = set(states)
        return [tp for tp, state in self.partition_states.items() if state in wanted]

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionAndReplica]:
        """The topic's replicas that are in the state."""
        return [r for r in self.replicas_for_topic(topic) if self.replica_state(r) is state]

    def are_all_replicas_in_state(self, topic: str, state: ReplicaState) -> bool:
        """True without any replica."""
        return all(self.replica_state(r) is state for r in self.replicas_for_topic(topic))

    def is_any_replica_in_state(self, topic: str, state: ReplicaState) -> bool:
        return any(self.replica_state(r) is state for r in self.replicas_for_topic(topic))

    def is_replica_deleted(self, replica: PartitionAndReplica) -> bool:
        return self.replica_state(replica) is ReplicaState.DELETION_SUCCESSFUL

    def put_replica_state(self, replica: PartitionAndReplica, state: ReplicaState) -> None:
        if state is ReplicaState.NON_EXISTENT:
            self.replica_states.pop(replica, None)
        else:
            self.replica_states[replica] = state
