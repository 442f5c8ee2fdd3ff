"""CreateTopics and AlterPartition: what only the active controller does.

Any other broker answers NOT_CONTROLLER, and the sender looks for the controller anew.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kio.schema.errors import ErrorCode

from reference.controller.alter_partition import (
    UNKNOWN_BROKER_EPOCH,
    AlterPartitionAnswer,
    AlterPartitionItem,
)
from reference.controller.kafka_controller import KafkaController
from reference.model import LeaderAndIsr, LeaderRecoveryState
from reference.protocol.schema import build, build_items, item_class
from reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from reference.server.zk_admin_manager import CreatedTopic, TopicSpec, ZkAdminManager

_UNKNOWN = -1


class ControllerApis:
    """Needs this broker's controller, active or not, and the one who writes topics to ZooKeeper."""

    def __init__(self, controller: KafkaController, zk_admin: ZkAdminManager) -> None:
        self._controller = controller
        self._zk_admin = zk_admin

    async def handle_alter_partition(self, message: Any) -> Any:
        asked = [
            _alter_partition_item(topic, partition)
            for topic in message.topics
            for partition in topic.partitions
        ]
        error, answers = await self._controller.alter_partitions(
            message.broker_id, message.broker_epoch, asked
        )
        response = response_of(message)
        topic_class = item_class(response, "topics")
        remaining = iter(answers)
        topics = (
            {
                "topic_name": getattr(topic, "topic_name", None),
                "topic_id": getattr(topic, "topic_id", None),
                "partitions": build_items(
                    topic_class,
                    "partitions",
                    (
                        _alter_partition_answer(partition.partition_index, next(remaining))
                        for partition in topic.partitions
                    ),
                ),
            }
            for topic in (message.topics if error is ErrorCode.none else ())
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=error,
            topics=build_items(response, "topics", topics),
        )

    async def handle_create_topics(self, message: Any) -> Any:
        response = response_of(message)
        named = Counter(topic.name for topic in message.topics)
        if not self._controller.is_active:
            results = [CreatedTopic(name, ErrorCode.not_controller) for name in named]
        else:
            results = [
                CreatedTopic(name, ErrorCode.invalid_request, "The topic is named more than once.")
                for name, count in named.items()
                if count > 1
            ]
            results += await self._zk_admin.create_topics(
                [_topic_spec(topic) for topic in message.topics if named[topic.name] == 1],
                validate_only=getattr(message, "validate_only", False),
                timeout_ms=milliseconds(message.timeout),
            )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            topics=build_items(response, "topics", map(_created_topic, results)),
        )


def _alter_partition_item(topic: Any, partition: Any) -> AlterPartitionItem:
    if hasattr(partition, "new_isr"):
        new_isr = tuple((broker, UNKNOWN_BROKER_EPOCH) for broker in partition.new_isr)
    else:
        new_isr = tuple((b.broker_id, b.broker_epoch) for b in partition.new_isr_with_epochs)
    return AlterPartitionItem(
        topic=getattr(topic, "topic_name", None),
        topic_id=getattr(topic, "topic_id", None),
        partition=partition.partition_index,
        leader_epoch=partition.leader_epoch,
        new_isr=new_isr,
        leader_recovery_state=LeaderRecoveryState(getattr(partition, "leader_recovery_state", 0)),
        partition_epoch=partition.partition_epoch,
    )


def _alter_partition_answer(partition: int, answer: AlterPartitionAnswer) -> dict[str, Any]:
    state = LeaderAndIsr(_UNKNOWN, _UNKNOWN, (), partition_epoch=_UNKNOWN)
    error = ErrorCode.none
    if isinstance(answer, LeaderAndIsr):
        state = answer
    else:
        error = answer
    return {
        "partition_index": partition,
        "error_code": error,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
        "leader_recovery_state": int(state.leader_recovery_state),
        "partition_epoch": state.partition_epoch,
    }


def _topic_spec(topic: Any) -> TopicSpec:
    return TopicSpec(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment={item.partition_index: item.broker_ids for item in topic.assignments},
        configs={item.name: item.value for item in topic.configs},
    )


def _created_topic(created: CreatedTopic) -> dict[str, Any]:
    return {
        "name": created.name,
        "topic_id": created.topic_id,
        "error_code": created.error,
        "error_message": created.message,
        "num_partitions": created.num_partitions,
        "replication_factor": created.replication_factor,
        "configs": (),
    }
