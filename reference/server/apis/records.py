"""DeleteRecords: the records of partitions below given offsets are deleted on the leader and all its live followers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.delayed_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResults,
)
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.record_deletions import RecordDeletions


class RecordApis:
    """Needs the leaders, and the cache to tell what is unknown from what is elsewhere."""

    def __init__(self, deletions: RecordDeletions, metadata_cache: MetadataCache) -> None:
        self._deletions = deletions
        self._metadata_cache = metadata_cache

    def handle_delete_records(self, message: Any) -> Any | Awaitable[Any]:
        """The response, once every low watermark is where it should be or the time is up."""
        offsets = {
            TopicPartition(topic.name, partition.partition_index): partition.offset
            for topic in message.topics
            for partition in topic.partitions
        }
        unknown = DeleteRecordsPartitionResult(ErrorCode.unknown_topic_or_partition)
        refused = {key: unknown for key in offsets if not self._metadata_cache.contains(key)}
        return self._deletions.delete_records(
            timeout_ms=milliseconds(message.timeout),
            offsets={key: offset for key, offset in offsets.items() if key not in refused},
            respond=lambda results: _response(message, refused | results),
        )


def _response(message: Any, results: DeleteRecordsResults) -> Any:
    response = response_of(message)
    topic_class = item_class(response, "topics")
    topics = [
        {
            "name": topic.name,
            "partitions": build_items(
                topic_class,
                "partitions",
                (
                    {
                        "partition_index": partition.partition_index,
                        "low_watermark": result.low_watermark,
                        "error_code": result.error,
                    }
                    for partition in topic.partitions
                    for result in [results[TopicPartition(topic.name, partition.partition_index)]]
                ),
            ),
        }
        for topic in message.topics
    ]
    return build(
        response, throttle_time=NO_THROTTLE, topics=build_items(response, "topics", topics)
    )
