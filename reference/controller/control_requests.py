"""The controller's three requests as kio values: LeaderAndIsr v7, UpdateMetadata v8, StopReplica v4. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeVar, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.leader_and_isr.v7 import request as lisr
from kio.schema.leader_and_isr.v7.response import LeaderAndIsrResponse
from kio.schema.stop_replica.v4 import request as stop
from kio.schema.types import BrokerId, TopicName
from kio.schema.update_metadata.v8 import request as update
from kio.static.primitive import i8, i16, i32, i64

from reference.model import (
    BrokerEndPoint,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)

_INCREMENTAL = i8(0)
_PLAINTEXT = i16(0)
_State = TypeVar("_State")


def leader_and_isr_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    states: Mapping[TopicPartition, LeaderAndIsrPartitionState],
    live_leaders: Iterable[BrokerEndPoint],
) -> lisr.LeaderAndIsrRequest:
    return lisr.LeaderAndIsrRequest(
        controller_id=BrokerId(controller_id),
        controller_epoch=i32(controller_epoch),
        broker_epoch=i64(broker_epoch),
        type_=_INCREMENTAL,
        topic_states=tuple(
            lisr.LeaderAndIsrTopicState(
                topic_name=cast("TopicName", topic),
                topic_id=topic_states[0].topic_id,
                partition_states=tuple(_leader_and_isr_state(state) for state in topic_states),
            )
            for topic, topic_states in _by_topic(states)
        ),
        live_leaders=tuple(
            lisr.LeaderAndIsrLiveLeader(
                broker_id=BrokerId(broker.id), host_name=broker.host, port=i32(broker.port)
            )
            for broker in live_leaders
        ),
    )


def update_metadata_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    states: Mapping[TopicPartition, UpdateMetadataPartitionState],
    live_brokers: Iterable[BrokerEndPoint],
) -> update.UpdateMetadataRequest:
    return update.UpdateMetadataRequest(
        controller_id=BrokerId(controller_id),
        controller_epoch=i32(controller_epoch),
        broker_epoch=i64(broker_epoch),
        topic_states=tuple(
            update.UpdateMetadataTopicState(
                topic_name=cast("TopicName", topic),
                topic_id=topic_states[0].topic_id,
                partition_states=tuple(_update_metadata_state(state) for state in topic_states),
            )
            for topic, topic_states in _by_topic(states)
        ),
        live_brokers=tuple(
            update.UpdateMetadataBroker(
                id_=BrokerId(broker.id),
                endpoints=(
                    update.UpdateMetadataEndpoint(
                        port=i32(broker.port),
                        host=broker.host,
                        listener="PLAINTEXT",
                        security_protocol=_PLAINTEXT,
                    ),
                ),
                rack=broker.rack,
            )
            for broker in live_brokers
        ),
    )


def stop_replica_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    states: Mapping[TopicPartition, StopReplicaPartitionState],
) -> stop.StopReplicaRequest:
    return stop.StopReplicaRequest(
        controller_id=BrokerId(controller_id),
        controller_epoch=i32(controller_epoch),
        broker_epoch=i64(broker_epoch),
        topic_states=tuple(
            stop.StopReplicaTopicState(
                topic_name=cast("TopicName", topic),
                partition_states=tuple(
                    stop.StopReplicaPartitionState(
                        partition_index=i32(state.topic_partition.partition),
                        leader_epoch=i32(state.leader_epoch),
                        delete_partition=state.delete_partition,
                    )
                    for state in topic_states
                ),
            )
            for topic, topic_states in _by_topic(states)
        ),
    )


def partition_errors(
    response: LeaderAndIsrResponse, topic_names: Mapping[UUID, str]
) -> dict[TopicPartition, ErrorCode]:
    """The errors that a LeaderAndIsr response gives to single partitions; unknown topic ids are left out."""
    return {
        TopicPartition(topic_names[topic.topic_id], int(partition.partition_index)): (
            partition.error_code
        )
        for topic in response.topics
        if topic.topic_id is not None and topic.topic_id in topic_names
        for partition in topic.partition_errors
        if partition.error_code is not ErrorCode.none
    }


def _by_topic(states: Mapping[TopicPartition, _State]) -> list[tuple[str, list[_State]]]:
    ordered = sorted(states.items(), key=lambda item: item[0])
    return [
        (topic, [state for _, state in items])
        for topic, items in groupby(ordered, key=lambda item: item[0].topic)
    ]


def _leader_and_isr_state(state: LeaderAndIsrPartitionState) -> lisr.LeaderAndIsrPartitionState:
    leader_and_isr = state.leader_and_isr
    return lisr.LeaderAndIsrPartitionState(
        partition_index=i32(state.topic_partition.partition),
        controller_epoch=i32(state.controller_epoch),
        leader=BrokerId(leader_and_isr.leader),
        leader_epoch=i32(leader_and_isr.leader_epoch),
        isr=_ids(leader_and_isr.isr),
        partition_epoch=i32(leader_and_isr.partition_epoch),
        replicas=_ids(state.replicas),
        adding_replicas=_ids(state.adding_replicas),
        removing_replicas=_ids(state.removing_replicas),
        is_new=state.is_new,
        leader_recovery_state=i8(int(leader_and_isr.leader_recovery_state)),
    )


def _update_metadata_state(
    state: UpdateMetadataPartitionState,
) -> update.UpdateMetadataPartitionState:
    return update.UpdateMetadataPartitionState(
        partition_index=i32(state.topic_partition.partition),
        controller_epoch=i32(state.controller_epoch),
        leader=BrokerId(state.leader),
        leader_epoch=i32(state.leader_epoch),
        isr=_ids(state.isr),
        zk_version=i32(state.partition_epoch),
        replicas=_ids(state.replicas),
        offline_replicas=_ids(state.offline_replicas),
    )


def _ids(broker_ids: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker_id) for broker_id in broker_ids)
