"""DescribeLogDirs and AlterReplicaLogDirs (KIP-113): what this broker keeps on its disks, and on which of them.

Logs that no controller has spoken of since the broker started are told of as well, so this shows what a deletion or a
reassignment has left behind. A replica that moves has two logs; the one that is not served yet is its future one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_directory import LogDirectory
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of

Targets = Mapping[TopicPartition, str]
"""Log directories, by the replica that is to move there."""
Answers = Mapping[TopicPartition, ErrorCode]

_INVALID_OFFSET_LAG: Final = -1


class LogDirApis:
    """Needs the logs of this broker, and who moves them."""

    def __init__(
        self,
        log_manager: LogManager,
        *,
        alter: Callable[[Targets], Answers],
        on_storage_error: Callable[[KafkaStorageError], None],
    ) -> None:
        """``alter`` lets replicas move."""
        self._log_manager = log_manager
        self._alter = alter
        self._on_storage_error = on_storage_error

    def handle_alter_replica_log_dirs(self, message: Any) -> Any:
        targets = {
            TopicPartition(topic.name, partition): log_dir.path
            for log_dir in message.dirs
            for topic in log_dir.topics
            for partition in topic.partitions
        }
        answers = self._alter(targets)
        response = response_of(message)
        result_class = item_class(response, "results")
        results = (
            {
                "topic_name": topic,
                "partitions": build_items(
                    result_class,
                    "partitions",
                    ({"partition_index": tp.partition, "error_code": answers[tp]} for tp in group),
                ),
            }
            for topic, group in groupby(sorted(answers), key=lambda tp: tp.topic)
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            results=build_items(response, "results", results),
        )

    def handle_describe_log_dirs(self, message: Any) -> Any:
        asked = None
        if message.topics is not None:
            asked = {TopicPartition(t.topic, p) for t in message.topics for p in t.partitions}
        response = response_of(message)
        result_class = item_class(response, "results")
        results = (
            self._result(result_class, log_dir, directory, asked)
            for log_dir, directory in self._log_manager.directories().items()
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            results=build_items(response, "results", results),
        )

    def _result(
        self,
        result_class: type[Any],
        log_dir: str,
        directory: LogDirectory | None,
        asked: set[TopicPartition] | None,
    ) -> dict[str, Any]:
        offline = {"log_dir": log_dir, "error_code": ErrorCode.kafka_storage_error, "topics": ()}
        if directory is None:
            return offline
        try:
            usage = self._log_manager.usage(log_dir)
        except KafkaStorageError as error:
            self._on_storage_error(error)
            return offline
        topics = self._topics(result_class, directory, asked)
        return {
            "log_dir": log_dir,
            "error_code": ErrorCode.none,
            "topics": build_items(result_class, "topics", topics),
            "total_bytes": usage.total_bytes,
            "usable_bytes": usage.usable_bytes,
        }

    def _topics(
        self,
        result_class: type[Any],
        directory: LogDirectory,
        asked: set[TopicPartition] | None,
    ) -> Iterable[dict[str, Any]]:
        """One item for each topic of a directory; ``asked`` is None for all of them."""
        topic_class = item_class(result_class, "topics")
        logs: Mapping[TopicPartition, Log] = directory.every_log
        requested = sorted(tp for tp in logs if asked is None or tp in asked)
        for topic, partitions in groupby(requested, key=lambda tp: tp.topic):
            items = (
                self._partition(tp, logs[tp], is_future=tp in directory.future_logs)
                for tp in partitions
            )
            yield {"name": topic, "partitions": build_items(topic_class, "partitions", items)}

    def _partition(
        self, topic_partition: TopicPartition, log: Log, *, is_future: bool
    ) -> dict[str, Any]:
        return {
            "partition_index": topic_partition.partition,
            "partition_size": log.size_in_bytes,
            "offset_lag": self._lag(topic_partition, log, is_future=is_future),
            "is_future_key": is_future,
        }

    def _lag(self, topic_partition: TopicPartition, log: Log, *, is_future: bool) -> int:
        """Behind what is committed, or a future log behind the current one; −1 if that is offline."""
        if not is_future:
            return max(0, log.high_watermark - log.log_end_offset)
        current = self._log_manager.get_log(topic_partition)
        if current is None:
            return _INVALID_OFFSET_LAG
        return max(0, current.log_end_offset - log.log_end_offset)
