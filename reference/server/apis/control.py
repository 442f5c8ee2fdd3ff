"""LeaderAndIsr, StopReplica and UpdateMetadata: what the controller tells a broker.

Only translation happens here. The decisions (controller epoch, broker epoch, leader epoch) and their traces are
ReplicaManager's, made without an await in between. Before a LeaderAndIsr that brings replicas of which this process has
not been told, the settings of their topics are read from ZooKeeper, as Kafka does when it creates a log; what else the
controller has to say waits so long.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    PLAINTEXT,
    UNDEFINED_EPOCH,
    Broker,
    BrokerEndPoint,
    EndPoint,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import leader_recovery_state, response_of
from nemesis.reference.server.kafka_request_handler import Later
from nemesis.reference.server.replica_manager import ReplicaManager

FetchConfigs = Callable[[Sequence[str]], Awaitable[object]]
"""Takes the settings of topics over from ZooKeeper."""


class ControlApis:
    """Needs the replicas, and somebody who reads the settings of topics."""

    def __init__(self, replica_manager: ReplicaManager, fetch_topic_configs: FetchConfigs) -> None:
        self._replica_manager = replica_manager
        self._fetch_topic_configs = fetch_topic_configs

    def handle_leader_and_isr(self, message: Any) -> Any | Later:
        states = [
            _leader_and_isr_state(name, topic_id, item)
            for name, topic_id, item in _partitions_by_topic(message, "ungrouped_partition_states")
        ]
        is_hosted = self._replica_manager.hosted.is_hosted
        new = [state for state in states if not is_hosted(state.topic_partition)]
        if not new:
            return self._become_leader_or_follower(message, states)
        topics = list(dict.fromkeys(state.topic_partition.topic for state in new))
        return self._with_configs_of(topics, message, states)

    async def _with_configs_of(
        self, topics: list[str], message: Any, states: list[LeaderAndIsrPartitionState]
    ) -> Any:
        await self._fetch_topic_configs(topics)
        return self._become_leader_or_follower(message, states)

    def _become_leader_or_follower(
        self, message: Any, states: list[LeaderAndIsrPartitionState]
    ) -> Any:
        error, partition_errors = self._replica_manager.become_leader_or_follower(
            message.controller_id,
            message.controller_epoch,
            getattr(message, "broker_epoch", UNDEFINED_EPOCH),
            states,
            [BrokerEndPoint(b.broker_id, b.host_name, b.port) for b in message.live_leaders],
        )
        response = response_of(message)
        if "partition_errors" in response.__dataclass_fields__:
            return _flat_errors(response, error, partition_errors)
        topic_class = item_class(response, "topics")
        topics = (
            {
                "topic_id": topic.topic_id,
                "partition_errors": build_items(
                    topic_class,
                    "partition_errors",
                    (
                        {"partition_index": tp.partition, "error_code": code}
                        for tp, code in partition_errors.items()
                        if tp.topic == topic.topic_name
                    ),
                ),
            }
            for topic in message.topic_states
        )
        return build(response, error_code=error, topics=build_items(response, "topics", topics))

    def handle_stop_replica(self, message: Any) -> Any:
        error, partition_errors = self._replica_manager.stop_replicas(
            message.controller_id,
            message.controller_epoch,
            getattr(message, "broker_epoch", UNDEFINED_EPOCH),
            list(_stop_replica_states(message)),
        )
        return _flat_errors(response_of(message), error, partition_errors)

    def handle_update_metadata(self, message: Any) -> Any:
        error = self._replica_manager.maybe_update_metadata_cache(
            message.controller_id,
            message.controller_epoch,
            getattr(message, "broker_epoch", UNDEFINED_EPOCH),
            [_broker(broker) for broker in message.live_brokers],
            [
                _update_metadata_state(name, topic_id, item)
                for name, topic_id, item in _partitions_by_topic(
                    message, "ungrouped_partition_states"
                )
            ],
        )
        return response_of(message)(error_code=error)


def _partitions_by_topic(message: Any, ungrouped: str) -> Iterable[tuple[str, Any, Any]]:
    """(topic, topic id or None, partition state), whether the version groups by topic or not."""
    for item in getattr(message, ungrouped, ()):
        yield item.topic_name, None, item
    for topic in getattr(message, "topic_states", ()):
        for item in topic.partition_states:
            yield topic.topic_name, getattr(topic, "topic_id", None), item


def _leader_and_isr_state(name: str, topic_id: Any, item: Any) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        topic_partition=TopicPartition(name, item.partition_index),
        topic_id=topic_id,
        controller_epoch=item.controller_epoch,
        leader_and_isr=LeaderAndIsr(
            leader=item.leader,
            leader_epoch=item.leader_epoch,
            isr=item.isr,
            leader_recovery_state=leader_recovery_state(item),
            partition_epoch=item.partition_epoch,
        ),
        replicas=item.replicas,
        adding_replicas=getattr(item, "adding_replicas", ()),
        removing_replicas=getattr(item, "removing_replicas", ()),
        is_new=getattr(item, "is_new", False),
    )


def _update_metadata_state(name: str, topic_id: Any, item: Any) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        topic_partition=TopicPartition(name, item.partition_index),
        topic_id=topic_id,
        controller_epoch=item.controller_epoch,
        leader=item.leader,
        leader_epoch=item.leader_epoch,
        isr=item.isr,
        partition_epoch=item.zk_version,
        replicas=item.replicas,
        offline_replicas=getattr(item, "offline_replicas", ()),
    )


def _stop_replica_states(message: Any) -> Iterable[StopReplicaPartitionState]:
    for topic in getattr(message, "topic_states", ()):
        for item in topic.partition_states:
            yield StopReplicaPartitionState(
                TopicPartition(topic.topic_name, item.partition_index),
                item.leader_epoch,
                item.delete_partition,
            )
    old = [
        TopicPartition(item.topic_name, item.partition_index)
        for item in getattr(message, "ungrouped_partitions", ())
    ]
    old += [
        TopicPartition(topic.name, partition)
        for topic in getattr(message, "topics", ())
        for partition in topic.partition_indexes
    ]
    for topic_partition in old:
        yield StopReplicaPartitionState(topic_partition, UNDEFINED_EPOCH, message.delete_partitions)


def _broker(broker: Any) -> Broker:
    """Before version 3 a listener is called after its security protocol."""
    if hasattr(broker, "v0_host"):
        return Broker.at(broker.id_, broker.v0_host, broker.v0_port)
    end_points = tuple(
        EndPoint(end_point.host, end_point.port, getattr(end_point, "listener", PLAINTEXT))
        for end_point in broker.endpoints
    )
    return Broker(broker.id_, end_points, getattr(broker, "rack", None))


def _flat_errors(
    response: type[Any], error: ErrorCode, partition_errors: dict[TopicPartition, ErrorCode]
) -> Any:
    return build(
        response,
        error_code=error,
        partition_errors=build_items(
            response,
            "partition_errors",
            (
                {"topic_name": tp.topic, "partition_index": tp.partition, "error_code": code}
                for tp, code in partition_errors.items()
            ),
        ),
    )
