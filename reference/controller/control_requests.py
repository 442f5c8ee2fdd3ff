"""The controller's three requests as kio values: LeaderAndIsr v7, UpdateMetadata v8, StopReplica v4. Pure functions.

Messages are made without kio's own checks of each number, which would take longer than everything else: with a
thousand partitions a failover waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.leader_and_isr.v7 import request as lisr
from kio.schema.leader_and_isr.v7.response import LeaderAndIsrResponse
from kio.schema.stop_replica.v4 import request as stop
from kio.schema.stop_replica.v4.response import StopReplicaResponse
from kio.schema.update_metadata.v8 import request as update

from nemesis.reference.model import (
    Broker,
    BrokerEndPoint,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.protocol.schema import build, build_items

_INCREMENTAL = 0
_PLAINTEXT = 0
_State = TypeVar("_State")

TopicStates = tuple[update.UpdateMetadataTopicState, ...]


def leader_and_isr_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    states: Mapping[TopicPartition, LeaderAndIsrPartitionState],
    live_leaders: Iterable[BrokerEndPoint],
) -> lisr.LeaderAndIsrRequest:
    request: lisr.LeaderAndIsrRequest = build(
        lisr.LeaderAndIsrRequest,
        controller_id=controller_id,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        type_=_INCREMENTAL,
        topic_states=build_items(
            lisr.LeaderAndIsrRequest,
            "topic_states",
            (
                {
                    "topic_name": topic,
                    "topic_id": topic_states[0].topic_id,
                    "partition_states": build_items(
                        lisr.LeaderAndIsrTopicState,
                        "partition_states",
                        map(_leader_and_isr_state, topic_states),
                    ),
                }
                for topic, topic_states in _by_topic(states)
            ),
        ),
        live_leaders=build_items(
            lisr.LeaderAndIsrRequest,
            "live_leaders",
            (
                {"broker_id": broker.id, "host_name": broker.host, "port": broker.port}
                for broker in live_leaders
            ),
        ),
    )
    return request


def update_metadata_topics(
    states: Mapping[TopicPartition, UpdateMetadataPartitionState],
) -> TopicStates:
    """The part of an UpdateMetadata request that is the same for every broker."""
    return build_items(
        update.UpdateMetadataRequest,
        "topic_states",
        (
            {
                "topic_name": topic,
                "topic_id": topic_states[0].topic_id,
                "partition_states": build_items(
                    update.UpdateMetadataTopicState,
                    "partition_states",
                    map(_update_metadata_state, topic_states),
                ),
            }
            for topic, topic_states in _by_topic(states)
        ),
    )


def update_metadata_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    topics: TopicStates,
    live_brokers: Iterable[Broker],
) -> update.UpdateMetadataRequest:
    request: update.UpdateMetadataRequest = build(
        update.UpdateMetadataRequest,
        controller_id=controller_id,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=topics,
        live_brokers=build_items(
            update.UpdateMetadataRequest, "live_brokers", map(_live_broker, live_brokers)
        ),
    )
    return request


def stop_replica_request(
    controller_id: int,
    controller_epoch: int,
    broker_epoch: int,
    states: Mapping[TopicPartition, StopReplicaPartitionState],
) -> stop.StopReplicaRequest:
    request: stop.StopReplicaRequest = build(
        stop.StopReplicaRequest,
        controller_id=controller_id,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=build_items(
            stop.StopReplicaRequest,
            "topic_states",
            (
                {
                    "topic_name": topic,
                    "partition_states": build_items(
                        stop.StopReplicaTopicState,
                        "partition_states",
                        map(_stop_replica_state, topic_states),
                    ),
                }
                for topic, topic_states in _by_topic(states)
            ),
        ),
    )
    return request


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


def deleted_partitions(request: stop.StopReplicaRequest) -> list[TopicPartition]:
    """Those that a StopReplica request is to delete."""
    return [
        TopicPartition(topic.topic_name, int(partition.partition_index))
        for topic in request.topic_states
        for partition in topic.partition_states
        if partition.delete_partition
    ]


def stop_replica_errors(response: StopReplicaResponse) -> dict[TopicPartition, ErrorCode]:
    """What a StopReplica response says of each partition, NONE included."""
    return {
        TopicPartition(item.topic_name, int(item.partition_index)): item.error_code
        for item in response.partition_errors
    }


def _by_topic(states: Mapping[TopicPartition, _State]) -> list[tuple[str, list[_State]]]:
    ordered = sorted(states.items(), key=itemgetter(0))
    return [
        (topic, [state for _, state in items])
        for topic, items in groupby(ordered, key=lambda item: item[0].topic)
    ]


def _leader_and_isr_state(state: LeaderAndIsrPartitionState) -> dict[str, Any]:
    leader_and_isr = state.leader_and_isr
    return {
        "partition_index": state.topic_partition.partition,
        "controller_epoch": state.controller_epoch,
        "leader": leader_and_isr.leader,
        "leader_epoch": leader_and_isr.leader_epoch,
        "isr": leader_and_isr.isr,
        "partition_epoch": leader_and_isr.partition_epoch,
        "replicas": state.replicas,
        "adding_replicas": state.adding_replicas,
        "removing_replicas": state.removing_replicas,
        "is_new": state.is_new,
        "leader_recovery_state": int(leader_and_isr.leader_recovery_state),
    }


def _update_metadata_state(state: UpdateMetadataPartitionState) -> dict[str, Any]:
    return {
        "partition_index": state.topic_partition.partition,
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "zk_version": state.partition_epoch,
        "replicas": state.replicas,
        "offline_replicas": state.offline_replicas,
    }


def _stop_replica_state(state: StopReplicaPartitionState) -> dict[str, Any]:
    return {
        "partition_index": state.topic_partition.partition,
        "leader_epoch": state.leader_epoch,
        "delete_partition": state.delete_partition,
    }


def _live_broker(broker: Broker) -> dict[str, Any]:
    end_points = build_items(
        update.UpdateMetadataBroker,
        "endpoints",
        (
            {
                "port": end_point.port,
                "host": end_point.host,
                "listener": end_point.listener_name,
                "security_protocol": _PLAINTEXT,
            }
            for end_point in broker.end_points
        ),
    )
    return {"id_": broker.id, "endpoints": end_points, "rack": broker.rack}
