"""What a broker records of control requests that it has accepted: its answer for each partition, and new metadata.

Each function is called after the request was applied and before it is answered. What changes nothing is left out (a
controller repeats all states at its failover): a LeaderAndIsr state that is refused as an old one, and an
UpdateMetadata state that the cache had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    LEADER_DURING_DELETE,
    Broker,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.server.metadata_cache import MetadataSnapshot, Partitions, is_older
from nemesis.reference.trace import Kind, Tracer

Answers = Mapping[TopicPartition, ErrorCode]
Topics = Mapping[str, Partitions]


def trace_roles_answered(
    tracer: Tracer, states: Sequence[LeaderAndIsrPartitionState], answers: Answers
) -> None:
    """Record what a LeaderAndIsr request is answered."""
    for state in states:
        error = answers[state.topic_partition]
        if error is ErrorCode.stale_controller_epoch:
            continue
        tracer.event(
            Kind.CONTROL_REQUEST_ANSWERED,
            api="LeaderAndIsr",
            **_identity(state.topic_partition, state.topic_id),
            leader=state.leader_and_isr.leader,
            leader_epoch=state.leader_and_isr.leader_epoch,
            partition_epoch=state.leader_and_isr.partition_epoch,
            isr=list(state.leader_and_isr.isr),
            error=error.name.upper(),
        )


def trace_stops_answered(
    tracer: Tracer, states: Sequence[StopReplicaPartitionState], answers: Answers
) -> None:
    """Record what a StopReplica request is answered."""
    for state in states:
        tracer.event(
            Kind.CONTROL_REQUEST_ANSWERED,
            api="StopReplica",
            **_identity(state.topic_partition, None),
            leader_epoch=state.leader_epoch,
            step="delete" if state.delete_partition else "stop",
            error=answers[state.topic_partition].name.upper(),
        )


def trace_metadata(
    tracer: Tracer,
    controller: tuple[int, int],
    live_brokers: Sequence[Broker],
    states: Sequence[UpdateMetadataPartitionState],
    before: MetadataSnapshot,
    after: Topics,
) -> None:
    """Record an UpdateMetadata request, what it has changed, and its answer.

    ``controller``: its id and its epoch. ``before``: what the cache had. ``after``: the topics that it has.
    """
    controller_id, controller_epoch = controller
    is_late = any(_is_late(state, before.topics) for state in states)
    live = before.brokers if is_late else [broker.id for broker in live_brokers]
    tracer.event(
        Kind.METADATA_UPDATED,
        controller_epoch=controller_epoch,
        peer=controller_id,
        count=len(states),
        live=sorted(live),
    )
    for topic_partition in dict.fromkeys(state.topic_partition for state in states):
        known = _known(after, topic_partition)
        if known is not None and known != _known(before.topics, topic_partition):
            tracer.event(
                Kind.PARTITION_METADATA,
                **_state(known),
                controller_epoch=known.controller_epoch,
                replicas=list(known.replicas),
            )
    for state in states:
        if state != _known(before.topics, state.topic_partition):
            tracer.event(
                Kind.CONTROL_REQUEST_ANSWERED,
                api="UpdateMetadata",
                error=ErrorCode.none.name.upper(),
                **_state(state),
            )


def _is_late(state: UpdateMetadataPartitionState, topics: Topics) -> bool:
    """Whether the cache had a newer state: then the brokers of the request do not count."""
    known = _known(topics, state.topic_partition)
    return state.leader != LEADER_DURING_DELETE and known is not None and is_older(state, known)


def _known(topics: Topics, topic_partition: TopicPartition) -> UpdateMetadataPartitionState | None:
    return topics.get(topic_partition.topic, {}).get(topic_partition.partition)


def _state(state: UpdateMetadataPartitionState) -> dict[str, Any]:
    return {
        **_identity(state.topic_partition, state.topic_id),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "isr": list(state.isr),
    }


def _identity(topic_partition: TopicPartition, topic_id: UUID | None) -> dict[str, Any]:
    return {
        "topic": topic_partition.topic,
        "topic_id": None if topic_id is None else str(topic_id),
        "partition": topic_partition.partition,
    }
