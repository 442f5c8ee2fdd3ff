"""The second logs of replicas that move from one log directory to another, until they take the place of the first.

A future log is in the directory that the replica moves to, as ``<topic>-<partition>.<32 hexadecimal digits>-future``.
It is filled from the current one; once it has caught up it takes its place:

1. the future log is synced and closed, its offsets are checkpointed, a file ``.caught-up`` in it says that it is whole;
2. the current log is renamed for deletion;
3. the future log is renamed to what the current one was called.

Whoever stops in between finds both logs (up to 2) and goes on moving, or only the future one with its mark (before 3)
and lets it take its place. One without a current log and without the mark is what a deletion left, and is deleted.
While a log directory is offline neither is done: the current log may be in there.

Source: kafka.log.LogManager of Kafka 3.9 (replaceCurrentWithFutureLog; KIP-113), which renames in the other order and
refuses to start if it then finds two current logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log import Log, LogStartOffsetIncrementReason
from nemesis.reference.log.log_directory import Checkpointed, LogDirectory, OpenLog
from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Disk

CAUGHT_UP: Final = ".caught-up"


class FutureLogs:
    """Of all log directories of a broker. Methods raise KafkaStorageError when a medium fails."""

    def __init__(
        self, disk: Disk, directories: Mapping[str, LogDirectory], open_log: OpenLog
    ) -> None:
        """``directories`` are those that can be used, by path; they may become fewer."""
        self._disk = disk
        self._directories = directories
        self._open_log = open_log

    def get(self, topic_partition: TopicPartition) -> Log | None:
        directory = self._directory_of(topic_partition)
        return None if directory is None else directory.future_logs[topic_partition]

    def create(self, current: Log, log_dir: str) -> Log:
        """Return a new, empty future log of the replica in that directory."""
        topic_partition = current.topic_partition
        directory = self._directories[log_dir]
        path = directory.future_path(topic_partition)
        log = self._open_log(topic_partition, path, Checkpointed())
        if current.topic_id is not None:
            log.assign_topic_id(current.topic_id)
        directory.future_logs[topic_partition] = log
        return log

    def delete(self, topic_partition: TopicPartition) -> str | None:
        """Take the future log away; return its new path, which is to be removed, or None if there is none."""
        directory = self._directory_of(topic_partition)
        return None if directory is None else _take_away(topic_partition, directory)

    def complete(self, current: Log) -> None:
        """Make the future log, which has caught up, fit to take the current one's place whatever happens meanwhile."""
        directory = self._directories[self._future_of(current).log_dir]
        future = self._future_of(current)
        follow(future, current)
        future.close()
        directory.write_high_watermarks()
        directory.write_recovery_points()
        directory.write_log_start_offsets()
        with StorageErrors("completing", current.topic_partition, directory.path):
            self._disk.atomic.replace(f"{future.directory}/{CAUGHT_UP}", b"")

    def replace_current(self, current: Log) -> tuple[Log, str]:
        """Let the completed future log be served; return it, and the old one's path, which is to be removed.

        When this raises, the replica has no log until the broker restarts.
        """
        topic_partition = current.topic_partition
        source = self._directories[current.log_dir]
        target = self._directories[self._future_of(current).log_dir]
        deleted_path = _take_away(topic_partition, source)
        log = self._promote(topic_partition, target)
        # Epochs without records are not in the batches that were copied (KAFKA-7415).
        for entry in current.leader_epoch_cache.entries:
            if log.latest_epoch is None or entry.epoch > log.latest_epoch:
                log.maybe_assign_epoch_start_offset(entry.epoch, entry.start_offset)
        return log, deleted_path

    def settle(self, directory: LogDirectory) -> list[str]:
        """Finish what a stop has interrupted, all directories being loaded; return the paths that are to be removed."""
        deleted_paths = []
        for topic_partition, future in list(directory.future_logs.items()):
            if any(topic_partition in loaded.logs for loaded in self._directories.values()):
                continue  # goes on moving
            if self._is_complete(future):
                future.close()
                self._promote(topic_partition, directory)
            else:
                deleted_paths.append(_take_away(topic_partition, directory))
        return deleted_paths

    def _promote(self, topic_partition: TopicPartition, directory: LogDirectory) -> Log:
        log = directory.rename_to_current(topic_partition, self._open_log)
        with StorageErrors("moving", topic_partition, directory.path):
            self._disk.directories.remove(f"{log.directory}/{CAUGHT_UP}")
        return log

    def _is_complete(self, future: Log) -> bool:
        with StorageErrors("looking at", future.topic_partition, future.log_dir):
            return self._disk.files.exists(f"{future.directory}/{CAUGHT_UP}")

    def _future_of(self, current: Log) -> Log:
        future = self.get(current.topic_partition)
        if future is None:
            raise KafkaStorageError(f"{current.topic_partition} has no future log")
        return future

    def _directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        for directory in self._directories.values():
            if topic_partition in directory.future_logs:
                return directory
        return None


def has_caught_up(future: Log, current: Log) -> bool:
    """Whether there is nothing left to copy."""
    return future.log_end_offset == current.log_end_offset


def follow(future: Log, current: Log) -> None:
    """Take over what is not in the batches: where the current log starts, and up to where it is committed."""
    future.update_high_watermark(current.high_watermark)
    future.maybe_increment_log_start_offset(
        min(current.log_start_offset, future.high_watermark),
        LogStartOffsetIncrementReason.LEADER_OFFSET_INCREMENTED,
    )


def _take_away(topic_partition: TopicPartition, directory: LogDirectory) -> str:
    deleted_path = directory.rename_to_delete(topic_partition)
    directory.write_without_deleted()
    return deleted_path
