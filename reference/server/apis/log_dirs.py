"""DescribeLogDirs (KIP-113): what this broker keeps on its disks, whether or not it is a replica of it.

Logs that no controller has spoken of since the broker started are told of as well, so this shows what a deletion or a
reassignment has left behind. The size of the volumes (from version 4) is not known and told as −1, Kafka's word for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from kio.schema.errors import ErrorCode

from reference.log.log import Log
from reference.log.log_manager import LogManager
from reference.model import TopicPartition
from reference.protocol.schema import build, build_items, item_class
from reference.server.apis.conversion import NO_THROTTLE, response_of


class LogDirApis:
    """Needs the logs of this broker."""

    def __init__(self, log_manager: LogManager) -> None:
        self._log_manager = log_manager

    def handle_describe_log_dirs(self, message: Any) -> Any:
        asked = None
        if message.topics is not None:
            asked = {TopicPartition(t.topic, p) for t in message.topics for p in t.partitions}
        response = response_of(message)
        result_class = item_class(response, "results")
        results = (
            {
                "log_dir": log_dir,
                "error_code": ErrorCode.kafka_storage_error if logs is None else ErrorCode.none,
                "topics": build_items(
                    result_class, "topics", _topics(result_class, logs or {}, asked)
                ),
            }
            for log_dir, logs in self._log_manager.logs_by_dir().items()
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            results=build_items(response, "results", results),
        )


def _topics(
    result_class: type[Any],
    logs: Mapping[TopicPartition, Log],
    asked: set[TopicPartition] | None,
) -> Iterable[dict[str, Any]]:
    """One item for each topic of a directory; ``asked`` is None for all of them."""
    topic_class = item_class(result_class, "topics")
    told = sorted(tp for tp in logs if asked is None or tp in asked)
    for topic, partitions in groupby(told, key=lambda tp: tp.topic):
        items = (_partition(tp.partition, logs[tp]) for tp in partitions)
        yield {"name": topic, "partitions": build_items(topic_class, "partitions", items)}


def _partition(index: int, log: Log) -> dict[str, Any]:
    return {
        "partition_index": index,
        "partition_size": log.size_in_bytes,
        "offset_lag": max(0, log.high_watermark - log.log_end_offset),
        "is_future_key": False,
    }
