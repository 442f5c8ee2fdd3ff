"""All logs of one broker: found at start, created and deleted on the controller's word, their high watermarks kept.

A log directory (``log.dirs``) holds ``<topic>-<partition>/`` per log and replication-offset-checkpoint. The
checkpoint always lists every log of its directory, whether or not anybody leads it (KAFKA-1647): a log missing
there would come back with high watermark 0, and its follower would truncate to that. A deleted log leaves the
checkpoint at once, so that a topic created anew under the name does not inherit it.

A directory that cannot be loaded, or whose medium fails later, is offline with all its logs until the broker restarts;
with the last one the broker has to halt (KIP-112).

Limits: deletion is immediate, not delayed by file.delete.delay.ms; KafkaScheduler calls the checkpoint, this module has
no timers.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from reference.kafka_config import KafkaConfig
from reference.log.checkpoint import read_offsets, write_offsets
from reference.log.errors import KafkaStorageError
from reference.log.leader_epoch_file_cache import assign_all
from reference.log.log import Log
from reference.log.log_config import LogConfig, Value, log_config_of
from reference.model import TopicPartition
from reference.ports import Disk

_logger = logging.getLogger(__name__)

REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"
_LOG_NAME: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)")
_DELETE_SUFFIX: Final = "-delete"


class LogManager:
    """Owns every Log. Not for concurrent use: all methods are synchronous and called from the broker's one loop."""

    def __init__(self, config: KafkaConfig, disk: Disk) -> None:
        self._disk = disk
        self._configured_log_dirs = config.log_dirs
        self._log_dirs = list(config.log_dirs)
        self._logs: dict[TopicPartition, Log] = {}
        self._directory_of: dict[TopicPartition, str] = {}
        self._default_config = log_config_of(config)
        self._topic_configs: dict[str, Mapping[str, Value]] = {}
        """The settings of the topics that this broker was told of."""

    @property
    def live_log_dirs(self) -> tuple[str, ...]:
        """The directories that can be used."""
        return tuple(self._log_dirs)

    def load_logs(self) -> None:
        """Open and recover every log on disk; a directory that fails goes offline.

        Raises KafkaStorageError when no directory is left.
        """
        self._log_dirs = [d for d in self._configured_log_dirs if self._load_directory(d)]
        if not self._log_dirs:
            raise KafkaStorageError(
                f"no log directory of {', '.join(self._configured_log_dirs)} can be read"
            )

    def all_logs(self) -> Mapping[TopicPartition, Log]:
        """The logs there are; changes as they are created and deleted."""
        return self._logs

    def logs_by_dir(self) -> dict[str, dict[TopicPartition, Log] | None]:
        """The logs of each configured directory; None where it is offline."""
        found: dict[str, dict[TopicPartition, Log] | None] = {
            log_dir: {} if log_dir in self._log_dirs else None
            for log_dir in self._configured_log_dirs
        }
        for topic_partition, log in self._logs.items():
            if (logs := found[self._directory_of[topic_partition]]) is not None:
                logs[topic_partition] = log
        return found

    def update_topic_config(self, topic: str, overrides: Mapping[str, Value]) -> None:
        """Let these be the topic's own settings, by name, for the logs that are there and for those to come."""
        if overrides == self._topic_configs.get(topic, {}):
            return  # as nearly always: a broker that starts is told of thousands of topics
        self._topic_configs[topic] = overrides
        for topic_partition, log in self._logs.items():
            if topic_partition.topic == topic:
                log.config = self._config_of(topic)

    def reconfigure_default_log_config(self, config: LogConfig) -> None:
        """Let these be the settings of topics that have none of their own."""
        self._default_config = config
        for topic_partition, log in self._logs.items():
            log.config = self._config_of(topic_partition.topic)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def get_or_create_log(
        self, topic_partition: TopicPartition, topic_id: UUID | None, *, is_new: bool
    ) -> Log:
        """Return the log, created in the directory with the fewest logs if there is none.

        Raises InconsistentTopicIdError when it belongs to another topic id, KafkaStorageError when the disk fails, or
        when the replica is not new and might lie in a directory that is offline.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            if not self._log_dirs:
                raise KafkaStorageError(f"{topic_partition}: every log directory is offline")
            if not is_new and len(self._log_dirs) < len(self._configured_log_dirs):
                raise KafkaStorageError(
                    f"{topic_partition} may be in a log directory that is offline"
                )
            log_dir = min(self._log_dirs, key=self._count_logs)
            log = self._open(topic_partition, log_dir, high_watermark=0)
        if topic_id is not None:
            log.assign_topic_id(topic_id)
        return log

    def assign_leader_epochs(self, epochs: Mapping[TopicPartition, int]) -> None:
        """Let the epochs start at the ends of these logs, of those that there are; all files are written at once.

        A log whose file cannot be written is as it was; its own ``maybe_assign_epoch_start_offset`` has the error.
        """
        logs = {tp: log for tp in epochs if (log := self._logs.get(tp)) is not None}
        assign_all(
            self._disk,
            ((log.leader_epoch_cache, epochs[tp], log.log_end_offset) for tp, log in logs.items()),
        )

    def delete_log(self, topic_partition: TopicPartition) -> bool:
        """Delete the log and its checkpointed high watermark; return whether there was one."""
        log = self._logs.get(topic_partition)
        if log is None:
            return False
        log_dir = self._directory_of[topic_partition]
        with _storage_errors(f"deleting {topic_partition}", log_dir):
            doomed = f"{log.directory}{_DELETE_SUFFIX}"
            self._disk.remove(doomed)
            self._disk.rename(log.directory, doomed)
            del self._directory_of[topic_partition]
            del self._logs[topic_partition]
            self._disk.remove(doomed)
            self._write_high_watermarks(log_dir)
        return True

    def checkpoint_high_watermarks(
        self, offsets: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Write each log's high watermark, or the one given for it, to its directory's checkpoint."""
        for log_dir in self._log_dirs:
            with _storage_errors("checkpointing high watermarks", log_dir):
                self._write_high_watermarks(log_dir, offsets)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return what the checkpoints on disk say."""
        found: dict[TopicPartition, int] = {}
        for log_dir in self._log_dirs:
            with _storage_errors("reading high watermarks", log_dir):
                found |= self._read_checkpoint(log_dir)
        return found

    def handle_log_dir_failure(self, log_dir: str) -> list[TopicPartition]:
        """Give up a directory whose medium failed; return whose logs it had. Of one that is offline already: none."""
        if log_dir not in self._log_dirs:
            return []
        _logger.error("log directory %s goes offline", log_dir)
        self._log_dirs.remove(log_dir)
        return self._forget_logs(log_dir)

    def close(self) -> None:
        """Checkpoint the high watermarks, sync and close every log. The manager is not used afterwards."""
        self.checkpoint_high_watermarks()
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _load_directory(self, log_dir: str) -> bool:
        try:
            self._disk.make_directory(log_dir)
            high_watermarks = self._read_checkpoint(log_dir)
            for name in self._disk.list(log_dir):
                if name.endswith(_DELETE_SUFFIX):
                    self._disk.remove(f"{log_dir}/{name}")
                elif match := _LOG_NAME.fullmatch(name):
                    topic_partition = TopicPartition(match["topic"], int(match["partition"]))
                    self._open(topic_partition, log_dir, high_watermarks.get(topic_partition, 0))
            if high_watermarks.keys() - self._logs.keys():
                self._write_high_watermarks(log_dir)
        except (OSError, KafkaStorageError) as error:
            _logger.error("log directory %s goes offline: %s", log_dir, error)
            self._forget_logs(log_dir)
            return False
        return True

    def _forget_logs(self, log_dir: str) -> list[TopicPartition]:
        doomed = [key for key, owner in self._directory_of.items() if owner == log_dir]
        for topic_partition in doomed:
            self._disk.close(self._logs.pop(topic_partition).directory)
            del self._directory_of[topic_partition]
        return doomed

    def _open(self, topic_partition: TopicPartition, log_dir: str, high_watermark: int) -> Log:
        log = Log(
            topic_partition,
            f"{log_dir}/{topic_partition}",
            disk=self._disk,
            config=self._config_of(topic_partition.topic),
            high_watermark=high_watermark,
        )
        self._logs[topic_partition] = log
        self._directory_of[topic_partition] = log_dir
        return log

    def _config_of(self, topic: str) -> LogConfig:
        return self._default_config.with_overrides(self._topic_configs.get(topic, {}))

    def _count_logs(self, log_dir: str) -> int:
        return sum(owner == log_dir for owner in self._directory_of.values())

    def _read_checkpoint(self, log_dir: str) -> dict[TopicPartition, int]:
        return read_offsets(self._disk, f"{log_dir}/{REPLICATION_OFFSET_CHECKPOINT}")

    def _write_high_watermarks(
        self, log_dir: str, offsets: Mapping[TopicPartition, int] | None = None
    ) -> None:
        given = offsets or {}
        write_offsets(
            self._disk,
            f"{log_dir}/{REPLICATION_OFFSET_CHECKPOINT}",
            {
                topic_partition: given.get(
                    topic_partition, self._logs[topic_partition].high_watermark
                )
                for topic_partition, owner in self._directory_of.items()
                if owner == log_dir
            },
        )


@contextmanager
def _storage_errors(doing: str, log_dir: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise KafkaStorageError(f"{doing}: {error}", failed_log_dir=log_dir) from error
