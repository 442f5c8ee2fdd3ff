"""ListOffsets and OffsetForLeaderEpoch.

ListOffsets with replica id −2 is a debugging read: any replica answers with its log end offset. Version
0 of it knows neither timestamps nor epochs in its answer; it gets the one offset asked for.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import (
    NO_THROTTLE,
    consumer_isolation,
    response_of,
)
from nemesis.reference.server.offset_lookups import OffsetLookups


class OffsetApis:
    """Needs the replicas only."""

    def __init__(self, offsets: OffsetLookups) -> None:
        self._offsets = offsets

    def handle_list_offsets(self, message: Any) -> Any:
        response = response_of(message)
        topic_class = item_class(response, "topics")
        topics = [
            {
                "name": topic.name,
                "partitions": build_items(
                    topic_class,
                    "partitions",
                    (self._list_offset(message, topic.name, item) for item in topic.partitions),
                ),
            }
            for topic in message.topics
        ]
        return build(
            response, throttle_time=NO_THROTTLE, topics=build_items(response, "topics", topics)
        )

    def _list_offset(self, message: Any, topic: str, partition: Any) -> dict[str, Any]:
        result = self._offsets.list_offset(
            TopicPartition(topic, partition.partition_index),
            partition.timestamp,
            getattr(partition, "current_leader_epoch", -1),
            message.replica_id,
            consumer_isolation(getattr(message, "isolation_level", 0)),
        )
        return {
            "partition_index": partition.partition_index,
            "error_code": result.error,
            "timestamp": result.timestamp,
            "offset": result.offset,
            "leader_epoch": result.leader_epoch,
            "old_style_offsets": (result.offset,) if result.error is ErrorCode.none else (),
        }

    def handle_offset_for_leader_epoch(self, message: Any) -> Any:
        response = response_of(message)
        topic_class = item_class(response, "topics")
        topics = [
            {
                "topic": topic.topic,
                "partitions": build_items(
                    topic_class,
                    "partitions",
                    (self._epoch_end_offset(topic.topic, item) for item in topic.partitions),
                ),
            }
            for topic in message.topics
        ]
        return build(
            response, throttle_time=NO_THROTTLE, topics=build_items(response, "topics", topics)
        )

    def _epoch_end_offset(self, topic: str, partition: Any) -> dict[str, Any]:
        error, end = self._offsets.end_offset_for_epoch(
            TopicPartition(topic, partition.partition),
            getattr(partition, "current_leader_epoch", -1),
            partition.leader_epoch,
        )
        return {
            "partition": partition.partition,
            "error_code": error,
            "leader_epoch": end.leader_epoch,
            "end_offset": end.end_offset,
        }
