"""All logs of one broker: found at start, created and deleted on the controller's word, looked after meanwhile.

A log directory (``log.dirs``) holds ``<topic>-<partition>/`` per log, and checkpoints (``log_directory``). One that
cannot be loaded, or whose medium fails later, is offline with all its logs until the broker restarts; with the last one
the broker has to halt (KIP-112). A replica that moves from one directory to another has two logs meanwhile, of which
one is served (``future_logs``).

Recurring work, by Kafka's names: kafka-log-retention, kafka-log-flusher, kafka-recovery-point-checkpoint,
kafka-log-start-offset-checkpoint, kafka-delete-logs (a deleted log is renamed at once, its directory is removed after
``log.segment.delete.delay.ms``). Logs are compacted by ``log_cleaner``, which gives up one that is cut or goes.

Source: kafka.log.LogManager of Kafka 3.9.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from uuid import UUID

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.delayed_deletion import DelayedDeletion
from nemesis.reference.log.errors import KafkaStorageError, LogDirNotFoundError
from nemesis.reference.log.future_logs import FutureLogs
from nemesis.reference.log.leader_epoch_file_cache import assign_all
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_cleaner import LogCleaner
from nemesis.reference.log.log_cleaner_manager import LogCleanerManager
from nemesis.reference.log.log_config import LogConfig, Value, log_config_of
from nemesis.reference.log.log_directory import Checkpointed, LogDirectory
from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Disk, DiskUsage, Scheduler, WallClock
from nemesis.reference.trace import Kind, NullTracer, Tracer

_logger = logging.getLogger(__name__)

OnStorageError = Callable[[KafkaStorageError], None]


class LogManager:
    """Owns every Log. Not for concurrent use: all methods are synchronous and called from the broker's one loop."""

    def __init__(
        self,
        config: KafkaConfig,
        disk: Disk,
        *,
        wall_clock: WallClock = lambda: 0,
        tracer: Tracer | None = None,
    ) -> None:
        self._config = config
        self._disk = disk
        self._wall_clock = wall_clock
        self._tracer = tracer or NullTracer()
        self._configured_log_dirs = config.log_dirs
        self._directories = {path: LogDirectory(disk, path) for path in config.log_dirs}
        """Those that can be used, by path."""
        self._futures = FutureLogs(disk, self._directories, self._open)
        self._preferred_log_dirs: dict[TopicPartition, str] = {}
        """Where replicas are to be that have no log yet."""
        self._logs: dict[TopicPartition, Log] = {}
        self._default_config = log_config_of(config)
        self._topic_configs: dict[str, Mapping[str, Value]] = {}
        """The settings of the topics that this broker was told of."""
        self._deletion = DelayedDeletion(disk.directories, self._directories, self._attempt)
        cleanings = LogCleanerManager(self._logs, self._directories, wall_clock)
        self.cleaner = LogCleaner(config, cleanings, wall_clock=wall_clock, tracer=self._tracer)
        self._on_storage_error: OnStorageError = _log_error

    @property
    def live_log_dirs(self) -> tuple[str, ...]:
        """The directories that can be used."""
        return tuple(self._directories)

    def load_logs(self) -> None:
        """Open and recover every log on disk; a directory that fails goes offline.

        Raises KafkaStorageError when no directory is left.
        """
        self._for_each_directory(lambda directory: directory.load(self._open))
        if self._all_are_online():
            self._for_each_directory(self._settle)
        for directory in self._directories.values():
            self._logs |= directory.logs
        if not self._directories:
            raise KafkaStorageError(
                f"no log directory of {', '.join(self._configured_log_dirs)} can be read"
            )

    def startup(self, scheduler: Scheduler, on_storage_error: OnStorageError) -> None:
        """Start the recurring work; ``on_storage_error`` is told of what fails in it."""
        self._deletion.startup(scheduler)
        self._on_storage_error = on_storage_error
        config = self._config
        for name, job, period_ms in (
            ("kafka-log-retention", self.cleanup_logs, config.log_retention_check_interval_ms),
            ("kafka-log-flusher", self.flush_dirty_logs, config.log_flush_scheduler_interval_ms),
            (
                "kafka-recovery-point-checkpoint",
                self.checkpoint_recovery_points,
                config.log_flush_offset_checkpoint_interval_ms,
            ),
            (
                "kafka-log-start-offset-checkpoint",
                self.checkpoint_log_start_offsets,
                config.log_flush_start_offset_checkpoint_interval_ms,
            ),
            (
                "PeriodicProducerExpirationCheck",
                self.remove_expired_producers,
                config.producer_id_expiration_check_interval_ms,
            ),
        ):
            scheduler.schedule(name, job, period_s=period_ms / 1000)
        self.cleaner.startup(self._logs.values(), on_storage_error)

    def all_logs(self) -> Mapping[TopicPartition, Log]:
        """The logs there are; changes as they are created and deleted."""
        return self._logs

    def directories(self) -> dict[str, LogDirectory | None]:
        """Each configured directory; None where it is offline."""
        return {path: self._directories.get(path) for path in self._configured_log_dirs}

    def usage(self, log_dir: str) -> DiskUsage:
        """Of the volume that the directory is on."""
        with StorageErrors("measuring", log_dir, log_dir):
            return self._disk.directories.usage(log_dir)

    def update_topic_config(self, topic: str, overrides: Mapping[str, Value]) -> None:
        """Let these be the topic's own settings, by name, for the logs that are there and for those to come."""
        if overrides == self._topic_configs.get(topic, {}):
            return  # as nearly always: a broker that starts is told of thousands of topics
        self._topic_configs[topic] = overrides
        for log in self._every_log():
            if log.topic_partition.topic == topic:
                log.config = self._config_of(topic)
                self.cleaner.attend_to(log)

    def reconfigure_default_log_config(self, config: LogConfig) -> None:
        """Let these be the settings of topics that have none of their own."""
        self._default_config = config
        for log in self._every_log():
            log.config = self._config_of(log.topic_partition.topic)
            self.cleaner.attend_to(log)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def get_or_create_log(
        self, topic_partition: TopicPartition, topic_id: UUID | None, *, is_new: bool
    ) -> Log:
        """Return the log, created if there is none: where it is to be, or in the directory with the fewest logs.

        Raises InconsistentTopicIdError when it belongs to another topic id, KafkaStorageError when the disk fails, or
        when the replica is not new and might lie in a directory that is offline.
        """
        log = self._logs.get(topic_partition)
        if log is None:
            if not self._directories:
                raise KafkaStorageError(f"{topic_partition}: every log directory is offline")
            if not is_new and not self._all_are_online():
                raise KafkaStorageError(
                    f"{topic_partition} may be in a log directory that is offline"
                )
            preferred = self._directories.get(self._preferred_log_dirs.pop(topic_partition, ""))
            directory = preferred or min(
                self._directories.values(), key=lambda each: len(each.every_log)
            )
            log = self._open(topic_partition, f"{directory.path}/{topic_partition}", Checkpointed())
            self._logs[topic_partition] = directory.logs[topic_partition] = log
            self.cleaner.attend_to(log)
        if topic_id is not None:
            log.assign_topic_id(topic_id)
        return log

    def require_online(self, log_dir: str) -> None:
        """Raise LogDirNotFoundError unless there is such a directory, KafkaStorageError if it is offline."""
        if log_dir not in self._configured_log_dirs:
            raise LogDirNotFoundError(f"{log_dir} is none of this broker's log directories")
        if log_dir not in self._directories:
            raise KafkaStorageError(f"log directory {log_dir} is offline")

    def maybe_update_preferred_log_dir(self, topic_partition: TopicPartition, log_dir: str) -> None:
        """Let the replica's log be created there, if it has none yet."""
        if topic_partition not in self._logs:
            self._preferred_log_dirs[topic_partition] = log_dir

    def get_future_log(self, topic_partition: TopicPartition) -> Log | None:
        """The log with which the replica moves to another directory."""
        return self._futures.get(topic_partition)

    def create_future_log(self, topic_partition: TopicPartition, log_dir: str) -> Log:
        """Begin to move a replica, which does not move yet, to the directory.

        Raises KafkaStorageError, also while some directory is offline: it may hold the replica's future log.
        """
        if not self._all_are_online():
            raise KafkaStorageError(
                f"{topic_partition} is not moved while a log directory is offline"
            )
        return self._futures.create(self._logs[topic_partition], log_dir)

    def delete_future_log(self, topic_partition: TopicPartition) -> None:
        """Give up a move."""
        self._delete_logs(self._futures.delete(topic_partition))

    def complete_future_log(self, topic_partition: TopicPartition) -> None:
        """Sync the future log, which has caught up and takes the current one's place next."""
        self._futures.complete(self._logs[topic_partition])

    def replace_current_with_future_log(self, topic_partition: TopicPartition) -> Log:
        """End a move; return the replica's log. When this raises there is none until the broker restarts."""
        current = self._logs.pop(topic_partition)
        self.cleaner.abort_cleaning(current)
        log, deleted_path = self._futures.replace_current(current)
        self._logs[topic_partition] = log
        self._delete_logs(deleted_path)
        return log

    def assign_leader_epochs(self, epochs: Mapping[TopicPartition, int]) -> None:
        """Let the epochs start at the ends of these logs, of those that there are; all files are written at once.

        A log whose file cannot be written is as it was; its own ``maybe_assign_epoch_start_offset`` has the error.
        """
        logs = {tp: log for tp in epochs if (log := self._logs.get(tp)) is not None}
        assign_all(
            self._disk.atomic,
            ((log.leader_epoch_cache, epochs[tp], log.log_end_offset) for tp, log in logs.items()),
        )

    def truncate_to(self, log: Log, offset: int) -> None:
        """Cut the log there. The checkpoint never says that something was synced which is appended again later."""
        self.cleaner.abort_cleaning(log)
        log.truncate_to(offset)
        self._directories[log.log_dir].note_truncated(log)

    def truncate_fully_and_start_at(
        self, log: Log, offset: int, log_start_offset: int | None = None
    ) -> None:
        """Empty the log; see ``Log``."""
        self.cleaner.abort_cleaning(log)
        log.truncate_fully_and_start_at(offset, log_start_offset)
        self._directories[log.log_dir].note_truncated(log)

    def delete_log(self, topic_partition: TopicPartition) -> bool:
        """Delete the replica's logs and what is checkpointed of them; return whether there was one."""
        log = self._logs.get(topic_partition)
        if log is None:
            return False
        self.delete_future_log(topic_partition)
        self.cleaner.abort_cleaning(log)
        directory = self._directories[log.log_dir]
        deleted_path = directory.rename_to_delete(topic_partition)
        del self._logs[topic_partition]
        directory.write_without_deleted()
        self._delete_logs(deleted_path)
        return True

    def cleanup_logs(self) -> None:
        """Delete the segments that are too old, too many, or before their log's start; not while it is compacted."""
        for log in self._every_log():
            if not self.cleaner.is_cleaning(log):
                self._attempt(partial(log.delete_old_segments, self._trace_deletion))

    def _trace_deletion(self, log: Log, count: int, now_ms: int) -> None:
        deleted, left = log.segments[:count], log.segments[count:]
        self._tracer.event(
            Kind.SEGMENTS_DELETED,
            topic=log.topic_partition.topic,
            topic_id=None if log.topic_id is None else str(log.topic_id),
            partition=log.topic_partition.partition,
            offset=deleted[0].base_offset,
            last_offset=left[0].base_offset - 1,
            log_start_offset=log.log_start_offset,
            high_watermark=log.high_watermark,
            bytes_after=sum(segment.size for segment in left),
            max_timestamp=deleted[-1].max_timestamp if deleted[-1].size else -1,
            wall_ms=now_ms,
        )

    def flush_dirty_logs(self) -> None:
        """Sync the logs whose last sync is ``flush.ms`` ago."""
        now_ms = self._wall_clock()
        for log in self._every_log():
            if log.unflushed_messages and now_ms - log.last_flush_ms >= log.config.flush_ms:
                self._attempt(log.flush)

    def checkpoint_recovery_points(self) -> None:
        """Write what is synced of each log."""
        for directory in list(self._directories.values()):
            self._attempt(directory.write_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        """Write where logs start within a segment."""
        for directory in list(self._directories.values()):
            self._attempt(directory.write_log_start_offsets)

    def checkpoint_high_watermarks(
        self, offsets: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Write each log's high watermark, or the one given for it, to its directory's checkpoint."""
        for directory in self._directories.values():
            directory.write_high_watermarks(offsets)

    def remove_expired_producers(self) -> None:
        """Let every log forget the producers that have not written for ``producer.id.expiration.ms``."""
        for log in self._every_log():
            log.producer_state_manager.remove_expired_producers()

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return what the checkpoints on disk say."""
        high_watermarks: dict[TopicPartition, int] = {}
        for directory in self._directories.values():
            high_watermarks |= directory.read_high_watermarks()
        return high_watermarks

    def handle_log_dir_failure(self, log_dir: str) -> list[TopicPartition]:
        """Give up a directory whose medium failed; return of which replicas it had the log that is served.

        Of one that is offline already: none.
        """
        directory = self._directories.pop(log_dir, None)
        if directory is None:
            return []
        _logger.error("log directory %s goes offline", log_dir)
        lost = directory.forget_logs()
        for topic_partition in lost:
            if (log := self._logs.pop(topic_partition, None)) is not None:
                self.cleaner.abort_cleaning(log)
        return lost

    def close(self) -> None:
        """Sync and close every log, and leave word of it. The manager is not used afterwards."""
        self.cleaner.shutdown()
        for directory in self._directories.values():
            try:
                directory.close()
            except KafkaStorageError as error:
                _logger.error("log directory %s is not closed cleanly: %s", directory.path, error)
            else:
                for log in directory.logs.values():
                    self._trace(Kind.LOG_CLOSED, log, log_dir=log.log_dir)
        self._logs.clear()

    def _for_each_directory(self, work: Callable[[LogDirectory], None]) -> None:
        """One that fails goes offline."""
        for log_dir, directory in list(self._directories.items()):
            try:
                work(directory)
            except KafkaStorageError as error:
                _logger.error("log directory %s goes offline: %s", log_dir, error)
                self._tracer.event(Kind.LOG_DIR_FAILED, log_dir=log_dir, error=str(error))
                directory.forget_logs()
                del self._directories[log_dir]

    def _settle(self, directory: LogDirectory) -> None:
        self._delete_logs(*self._futures.settle(directory))

    def _all_are_online(self) -> bool:
        return len(self._directories) == len(self._configured_log_dirs)

    def _every_log(self) -> list[Log]:
        return [
            log for directory in self._directories.values() for log in directory.every_log.values()
        ]

    def _open(
        self, topic_partition: TopicPartition, directory: str, checkpointed: Checkpointed
    ) -> Log:
        return Log(
            topic_partition,
            directory,
            disk=self._disk,
            config=self._config_of(topic_partition.topic),
            high_watermark=checkpointed.high_watermark,
            log_start_offset=checkpointed.log_start_offset,
            recovery_point=checkpointed.recovery_point,
            had_clean_shutdown=checkpointed.had_clean_shutdown,
            producer_id_expiration_ms=self._config.producer_id_expiration_ms,
            wall_clock=self._wall_clock,
            delete_later=self._deletion.delete_files,
            on_start_moved=self._trace_start,
            may_have_gaps=checkpointed.may_have_gaps,
            on_gap=self.cleaner.note_gaps,
            transaction_verification_enabled=self._config.transaction_partition_verification_enable,
        )

    def _config_of(self, topic: str) -> LogConfig:
        return self._default_config.with_overrides(self._topic_configs.get(topic, {}))

    def _trace_start(self, log: Log, reason: LogStartOffsetIncrementReason) -> None:
        if self._logs.get(log.topic_partition) is not log:
            return  # it is not served yet
        self._trace(Kind.LOG_START_OFFSET, log, reason=reason.value)

    def _trace(self, kind: Kind, log: Log, **columns: str) -> None:
        """Trace which log it is and how far it goes."""
        self._tracer.event(
            kind,
            topic=log.topic_partition.topic,
            topic_id=None if log.topic_id is None else str(log.topic_id),
            partition=log.topic_partition.partition,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
            **columns,
        )

    def _delete_logs(self, *paths: str | None) -> None:
        self._deletion.delete_logs(*paths, delay_ms=self._default_config.file_delete_delay_ms)

    def _attempt(self, work: Callable[[], object]) -> None:
        """One log or directory that fails is not in the way of the others."""
        try:
            work()
        except KafkaStorageError as error:
            self._on_storage_error(error)


def _log_error(error: KafkaStorageError) -> None:
    _logger.error("%s", error)
