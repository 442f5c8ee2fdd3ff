"""AlterPartition: leaders ask the active controller for another ISR.

Any other broker answers NOT_CONTROLLER, and the sender looks for the controller anew.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import (
    AlterPartitionAnswer,
    AlterPartitionItem,
)
from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH, LeaderAndIsr
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, leader_recovery_state, response_of

_UNKNOWN = -1


class AlterPartitionApis:
    """Needs this broker's controller, active or not."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

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
        leader_recovery_state=leader_recovery_state(partition),
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
