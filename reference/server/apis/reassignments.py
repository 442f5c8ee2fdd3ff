"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455): translated for the controller's event queue.

A broker that is not the controller answers NOT_CONTROLLER to all of a request. As in Kafka with ZooKeeper the request's
time-out is not looked at: the answer comes when the reassignments have begun, not when they are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_events import (
    ApiPartitionReassignment,
    ListPartitionReassignments,
)
from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.model import ApiError, TopicPartition
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.zk.zk_data import ReplicaAssignment

_NOT_CONTROLLER = "This is not the correct controller for this cluster."
_Value = TypeVar("_Value")


class ReassignmentApis:
    """Needs this broker's controller, active or not."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    async def handle_alter_partition_reassignments(self, message: Any) -> Any:
        targets = {
            TopicPartition(topic.name, partition.partition_index): partition.replicas
            for topic in message.topics
            for partition in topic.partitions
        }
        error, answers = await self._controller.ask(ApiPartitionReassignment(targets))
        return _response(message, error, "responses", answers, _answer)

    async def handle_list_partition_reassignments(self, message: Any) -> Any:
        partitions = None
        if message.topics is not None:
            named = (
                TopicPartition(topic.name, index)
                for topic in message.topics
                for index in topic.partition_indexes
            )
            partitions = tuple(dict.fromkeys(named))
        error, reassignments = await self._controller.ask(ListPartitionReassignments(partitions))
        return _response(message, error, "topics", reassignments, _in_progress)


def _response(
    message: Any,
    error: ErrorCode,
    topics: str,
    by_partition: Mapping[TopicPartition, _Value],
    item_of: Any,
) -> Any:
    """The response with one item for each partition, by topic."""
    response = response_of(message)
    topic_class = item_class(response, topics)
    items = (
        {
            "name": topic,
            "partitions": build_items(
                topic_class,
                "partitions",
                ({"partition_index": tp.partition, **item_of(value)} for tp, value in partitions),
            ),
        }
        for topic, partitions in _by_topic(by_partition)
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=error,
        error_message=_NOT_CONTROLLER if error is ErrorCode.not_controller else None,
        **{topics: build_items(response, topics, items)},
    )


def _by_topic(
    by_partition: Mapping[TopicPartition, _Value],
) -> Iterable[tuple[str, Iterable[tuple[TopicPartition, _Value]]]]:
    ordered = sorted(by_partition.items(), key=lambda item: item[0])
    return groupby(ordered, key=lambda item: item[0].topic)


def _answer(answer: ApiError) -> dict[str, Any]:
    return {"error_code": answer.code, "error_message": answer.message}


def _in_progress(assignment: ReplicaAssignment) -> dict[str, Any]:
    return {
        "replicas": assignment.replicas,
        "adding_replicas": assignment.adding_replicas,
        "removing_replicas": assignment.removing_replicas,
    }
