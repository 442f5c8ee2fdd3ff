"""What a broker knows of the cluster: live brokers, partition states, topic ids, the controller.

Filled by UpdateMetadata alone, so it lags behind ZooKeeper, by different amounts on different brokers.
An update replaces the brokers and merges the partitions (leader −2 removes one). A partition keeps its state
when the update holds an older one: a request that is sent again may arrive after a newer one. The brokers of such a
late update do not count, either. For the same reason what was announced as deleted is remembered by its topic id, and
nothing that is said of it later counts. The whole state is one immutable snapshot that is exchanged at once: whoever
answers from ``snapshot`` sees a single state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from nemesis.reference.model import (
    LEADER_DURING_DELETE,
    Broker,
    BrokerEndPoint,
    TopicPartition,
    UpdateMetadataPartitionState,
)

Partitions = Mapping[int, UpdateMetadataPartitionState]


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """One state of the cache; never changed in place."""

    controller_id: int | None = None
    controller_epoch: int = 0
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Partitions] = field(default_factory=dict)
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)


class MetadataCache:
    """The current snapshot, and the questions that others ask of it."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.snapshot = MetadataSnapshot()
        self._deleted: set[tuple[UUID, int]] = set()

    def update(
        self,
        controller_id: int,
        controller_epoch: int,
        live_brokers: Iterable[Broker],
        partitions: Iterable[UpdateMetadataPartitionState],
    ) -> list[TopicPartition]:
        """Take over an UpdateMetadataRequest whose epochs were checked; returns what it deleted.

        A request with an older state of a partition is late, so its live brokers do not replace the newer ones.
        """
        topics = dict(self.snapshot.topics)
        topic_ids = dict(self.snapshot.topic_ids)
        copied: dict[str, dict[int, UpdateMetadataPartitionState]] = {}
        deleted: list[TopicPartition] = []
        is_late = False
        for state in partitions:
            topic, partition = state.topic_partition.topic, state.topic_partition.partition
            if topic not in copied:
                copied[topic] = dict(topics.get(topic, {}))
            known = copied[topic].get(partition)
            if state.leader == LEADER_DURING_DELETE:
                if state.topic_id is not None:
                    self._deleted.add((state.topic_id, partition))
                if known is not None and not _is_another_topic(state, known):
                    del copied[topic][partition]
                    deleted.append(state.topic_partition)
                continue
            if self.is_deleted(state.topic_id, partition):
                continue
            if known is not None and is_older(state, known):
                is_late = True
                continue
            copied[topic][partition] = state
            if state.topic_id is not None:
                topic_ids[topic] = state.topic_id
        for topic, states in copied.items():
            if states:
                topics[topic] = states
            else:
                topics.pop(topic, None)
                topic_ids.pop(topic, None)
        self.snapshot = MetadataSnapshot(
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            brokers=self.snapshot.brokers if is_late else _by_id(live_brokers),
            topics=topics,
            topic_ids=topic_ids,
            topic_names={topic_id: name for name, topic_id in topic_ids.items()},
        )
        return deleted

    @property
    def controller_id(self) -> int | None:
        """The sender of the last update; None before the first one, or when it is not alive."""
        controller_id = self.snapshot.controller_id
        return controller_id if controller_id in self.snapshot.brokers else None

    def alive_brokers(self) -> list[Broker]:
        """Ordered by id."""
        return list(self.snapshot.brokers.values())

    def alive_broker_node(self, broker_id: int, listener_name: str) -> BrokerEndPoint | None:
        """Where a broker is by this listener; None when it is not alive or has no such listener."""
        broker = self.snapshot.brokers.get(broker_id)
        return None if broker is None else broker.node(listener_name)

    def controller_node(self, listener_name: str) -> BrokerEndPoint | None:
        """Where the controller is by this listener; None when it is not known or not alive."""
        controller_id = self.controller_id
        return (
            None if controller_id is None else self.alive_broker_node(controller_id, listener_name)
        )

    def has_alive_broker(self, broker_id: int) -> bool:
        return broker_id in self.snapshot.brokers

    def topics(self) -> list[str]:
        """Names of all known topics, sorted."""
        return sorted(self.snapshot.topics)

    def topic_partitions(self, topic: str) -> Partitions:
        """The topic's partitions by number; empty when it is not known."""
        return self.snapshot.topics.get(topic, {})

    def partition_info(
        self, topic_partition: TopicPartition
    ) -> UpdateMetadataPartitionState | None:
        return self.topic_partitions(topic_partition.topic).get(topic_partition.partition)

    def contains(self, topic_partition: TopicPartition) -> bool:
        partitions = self.snapshot.topics.get(topic_partition.topic)
        return partitions is not None and topic_partition.partition in partitions

    def is_deleted(self, topic_id: UUID | None, partition: int) -> bool:
        """Whether an update has announced, in this process life, that the partition of this topic id is deleted."""
        return (topic_id, partition) in self._deleted

    def topic_id(self, topic: str) -> UUID | None:
        return self.snapshot.topic_ids.get(topic)

    def topic_name(self, topic_id: UUID) -> str | None:
        return self.snapshot.topic_names.get(topic_id)


def _by_id(brokers: Iterable[Broker]) -> dict[int, Broker]:
    return {broker.id: broker for broker in sorted(brokers, key=lambda broker: broker.id)}


def _is_another_topic(
    state: UpdateMetadataPartitionState, known: UpdateMetadataPartitionState
) -> bool:
    """Whether the name has come back since: a deletion that arrives late is not about the topic of now."""
    return None not in (state.topic_id, known.topic_id) and state.topic_id != known.topic_id


def is_older(state: UpdateMetadataPartitionState, known: UpdateMetadataPartitionState) -> bool:
    """Whether ``known`` was decided later. Epochs start anew with the topic id; equal ones may bring new replicas."""
    return state.topic_id == known.topic_id and _epochs(state) < _epochs(known)


def _epochs(state: UpdateMetadataPartitionState) -> tuple[int, int, int]:
    return state.controller_epoch, state.leader_epoch, state.partition_epoch
