"""A leader asks for another ISR (AlterPartition, KIP-497): what it sends, and whether it may have it.

``decide`` is pure: it looks at the controller's knowledge and returns the state to be written, the present state when
the request changes nothing, or the error. Its checks come in Kafka's order. Beyond Kafka with ZooKeeper it compares the
broker epochs of the proposed members (KIP-903; −1 means that the leader does not know one) and refuses an ISR that is
empty, lacks its leader or has members that are not replicas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.model import (
    UNKNOWN_BROKER_EPOCH,
    LeaderAndIsr,
    LeaderRecoveryState,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    """One partition of an AlterPartitionRequest. ``topic`` is set below version 2, ``topic_id`` from there on."""

    topic: str | None
    topic_id: UUID | None
    partition: int
    leader_epoch: int
    new_isr: tuple[tuple[int, int], ...]
    """Pairs of (broker id, broker epoch or −1)."""
    leader_recovery_state: LeaderRecoveryState
    partition_epoch: int


AlterPartitionAnswer = ErrorCode | LeaderAndIsr
"""An error, or the partition's state after the change."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The partition is as proposed already: a repeated request (KAFKA-14144)."""

    leader_and_isr: LeaderAndIsr


@dataclass(frozen=True, slots=True)
class Change:
    """To be written by compare-and-set on its partition epoch."""

    leader_and_isr: LeaderAndIsr


def topic_partition_of(
    context: ControllerContext, item: AlterPartitionItem
) -> TopicPartition | ErrorCode:
    """Return which partition is meant, or UNKNOWN_TOPIC_ID."""
    topic = item.topic
    if item.topic_id is not None:
        topic = context.topic_names.get(item.topic_id)
    return ErrorCode.unknown_topic_id if topic is None else TopicPartition(topic, item.partition)


def decide(
    context: ControllerContext, broker_id: int, item: AlterPartitionItem
) -> Change | Unchanged | ErrorCode:
    """Say what to do with one partition of a request from a live broker with the right epoch."""
    topic_partition = topic_partition_of(context, item)
    if isinstance(topic_partition, ErrorCode):
        return topic_partition
    known = context.leadership.get(topic_partition)
    if known is None:
        return ErrorCode.unknown_topic_or_partition
    current = known.leader_and_isr
    members = tuple(member for member, _ in item.new_isr)
    if item.partition_epoch > current.partition_epoch or item.leader_epoch > current.leader_epoch:
        return ErrorCode.not_controller
    if item.leader_epoch < current.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if (
        broker_id == current.leader
        and set(members) == set(current.isr)
        and item.leader_recovery_state is current.leader_recovery_state
    ):
        return Unchanged(current)
    if item.partition_epoch < current.partition_epoch:
        return ErrorCode.invalid_update_version
    if not _is_well_formed(context, topic_partition, broker_id, current, item):
        return ErrorCode.invalid_request
    if not all(_is_eligible(context, topic_partition, *member) for member in item.new_isr):
        by_id = item.topic_id is not None
        return ErrorCode.ineligible_replica if by_id else ErrorCode.operation_not_attempted
    return Change(
        replace(current, isr=members, leader_recovery_state=item.leader_recovery_state),
    )


def _is_well_formed(
    context: ControllerContext,
    topic_partition: TopicPartition,
    broker_id: int,
    current: LeaderAndIsr,
    item: AlterPartitionItem,
) -> bool:
    members = [member for member, _ in item.new_isr]
    recovering = item.leader_recovery_state is LeaderRecoveryState.RECOVERING
    if recovering and len(members) > 1:
        return False
    if recovering and current.leader_recovery_state is LeaderRecoveryState.RECOVERED:
        return False
    replicas = context.assignment(topic_partition).replicas
    return (
        broker_id == current.leader
        and broker_id in members
        and len(set(members)) == len(members)
        and set(members) <= set(replicas)
    )


def _is_eligible(
    context: ControllerContext, topic_partition: TopicPartition, broker_id: int, broker_epoch: int
) -> bool:
    """A member must be alive, not shutting down, and the very incarnation that the leader saw (KIP-903)."""
    if not context.is_replica_online(broker_id, topic_partition):
        return False
    return broker_epoch in (UNKNOWN_BROKER_EPOCH, context.live_broker_epochs[broker_id])
