"""One of a broker's log directories: its logs, its checkpoint files, the mark of a clean stop.

    replication-offset-checkpoint      high watermarks: of every log, whether or not anybody leads it (KAFKA-1647)
    recovery-point-offset-checkpoint   what lies below was synced; one that is too large would hide what a crash hurt
    log-start-offset-checkpoint        of the logs that start within their first segment
    cleaner-offset-checkpoint          up to where logs have been compacted
    .kafka_cleanshutdown               nothing needs to be verified at the next start

A log that a replica is moving here (``-future``) has its place in these files, too: no directory has both logs of one
replica.

A log that is missing in the first file would come back with high watermark 0, and its follower would truncate to that.
A deleted log leaves all files at once, so that a topic created anew under the name inherits nothing. A malformed file
of high watermarks takes the directory offline; the next two count as empty then, as with Kafka: no harm but time.

A log that stands in the last file may have gaps between its batches, whatever its topic's policy is by now: a cleaner
has been, or is about to go, through it, or through the leader's that it was fetched from. It stands there before the
first gap is there, and as long as it exists. Recovery of any other log ends at a gap. So a malformed file takes the
directory offline, too.

Source: kafka.log.LogManager, CleanShutdownFileHandler of Kafka 3.9.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from nemesis.reference.log.checkpoint import read_offsets, write_offsets
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log import Log
from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Disk

_logger = logging.getLogger(__name__)

REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
_CLEAN_SHUTDOWN: Final = b'{"version":0,"brokerEpoch":-1}'
_LOG_NAME: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>[0-9]+)")
_FUTURE_NAME: Final = re.compile(_LOG_NAME.pattern + r"\.[0-9a-f]{32}-future")
_DOOMED_NAME: Final = re.compile(_LOG_NAME.pattern + r"\.[0-9a-f]{32}-delete")
"""Only what was renamed here is removed: somebody's ``backup-delete`` is not."""
DELETE_SUFFIX: Final = "-delete"
FUTURE_SUFFIX: Final = "-future"
_MAX_NAME: Final = 255


class Checkpointed(NamedTuple):
    """What the files say of one log; 0 where they say nothing."""

    high_watermark: int = 0
    recovery_point: int = 0
    log_start_offset: int = 0
    had_clean_shutdown: bool = False
    may_have_gaps: bool = False


def can_be_future(topic_partition: TopicPartition) -> bool:
    """Whether a future log of the partition can have its name; one of a very long topic cannot."""
    return len(str(topic_partition)) + len(f".{0:032x}{FUTURE_SUFFIX}") <= _MAX_NAME


OpenLog = Callable[[TopicPartition, str, Checkpointed], Log]
"""Opens the log of the partition in that directory."""


class LogDirectory:
    """Methods raise KafkaStorageError when the medium fails."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        """Of replicas that are moving here; none of them has a log here already."""
        self._disk = disk
        self._files = disk.files
        self._directories = disk.directories
        self._atomic = disk.atomic
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_start_offsets: dict[TopicPartition, int] = {}
        """Both as they are in the files."""
        self._cleaner_offsets: dict[TopicPartition, int] = {}
        self._renamed = 0

    @property
    def every_log(self) -> Mapping[TopicPartition, Log]:
        """The logs that are served and those that will be."""
        return self.logs | self.future_logs if self.future_logs else self.logs

    def load(self, open_log: OpenLog) -> None:
        """Open every log that is there; finish deletions that were interrupted."""
        with self._storage_errors("loading"):
            self._directories.make_directory(self.path)
            was_clean = self._take_clean_shutdown_mark()
            high_watermarks = read_offsets(self._files, self._file(REPLICATION_OFFSET_CHECKPOINT))
            recovery_points = self._read_or_nothing(RECOVERY_POINT_CHECKPOINT)
            log_start_offsets = self._read_or_nothing(LOG_START_OFFSET_CHECKPOINT)
            self._recovery_points, self._log_start_offsets = recovery_points, log_start_offsets
            self._cleaner_offsets = read_offsets(self._files, self._file(CLEANER_OFFSET_CHECKPOINT))
            for name in self._directories.list(self.path):
                if _DOOMED_NAME.fullmatch(name):
                    self._directories.remove(self._file(name))
                elif match := _LOG_NAME.fullmatch(name) or _FUTURE_NAME.fullmatch(name):
                    key = TopicPartition(match["topic"], int(match["partition"]))
                    known = Checkpointed(
                        high_watermarks.get(key, 0),
                        recovery_points.get(key, 0),
                        log_start_offsets.get(key, 0),
                        was_clean,
                        key in self._cleaner_offsets,
                    )
                    logs = self.logs if match.re is _LOG_NAME else self.future_logs
                    logs[key] = open_log(key, self._file(name), known)
        if high_watermarks.keys() - self.every_log.keys():
            self.write_high_watermarks()
        self._forget_absent()

    def write_high_watermarks(self, given: Mapping[TopicPartition, int] | None = None) -> None:
        """Checkpoint each log's high watermark, or the one given for it."""
        offsets = {key: log.high_watermark for key, log in self.every_log.items()}
        if given:
            offsets |= {key: given[key] for key in offsets if key in given}
        self._write(REPLICATION_OFFSET_CHECKPOINT, offsets)

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        """Return what the file says."""
        with self._storage_errors("reading high watermarks of"):
            return read_offsets(self._files, self._file(REPLICATION_OFFSET_CHECKPOINT))

    def write_recovery_points(self) -> None:
        """Checkpoint the recovery points, unless the file has them."""
        offsets = {key: log.recovery_point for key, log in self.every_log.items()}
        if offsets != self._recovery_points:
            self._write(RECOVERY_POINT_CHECKPOINT, offsets)
            self._recovery_points = offsets

    def write_log_start_offsets(self) -> None:
        """Checkpoint the log start offsets that no segment's name tells, unless the file has them."""
        offsets = {
            key: log.log_start_offset
            for key, log in self.every_log.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        if offsets != self._log_start_offsets:
            self._write(LOG_START_OFFSET_CHECKPOINT, offsets)
            self._log_start_offsets = offsets

    def cleaner_offset(self, topic_partition: TopicPartition) -> int | None:
        """Return up to where the log has been compacted; None when it does not stand in the file."""
        return self._cleaner_offsets.get(topic_partition)

    def write_cleaner_offset(self, topic_partition: TopicPartition, offset: int) -> None:
        """Checkpoint up to where a log has been compacted."""
        offsets = self._cleaner_offsets | {topic_partition: offset}
        self._write(CLEANER_OFFSET_CHECKPOINT, offsets)
        self._cleaner_offsets = offsets

    def note_truncated(self, log: Log) -> None:
        """Checkpoint what has fallen below what the files say: recovery points, up to where the log was compacted."""
        if self._cleaner_offsets.get(log.topic_partition, 0) > log.log_end_offset:
            self.write_cleaner_offset(log.topic_partition, log.log_end_offset)
        if self._recovery_points.get(log.topic_partition, 0) > log.recovery_point:
            self.write_recovery_points()

    def future_path(self, topic_partition: TopicPartition) -> str:
        """Return where a replica that moves here has its log meanwhile."""
        return self._file(self._new_name(topic_partition, FUTURE_SUFFIX))

    def rename_to_delete(self, topic_partition: TopicPartition) -> str:
        """Take the replica's log away, whichever it is; return its directory's new path, which is to be removed."""
        logs = self.logs if topic_partition in self.logs else self.future_logs
        with self._storage_errors(f"deleting {topic_partition} in"):
            deleted_path = self._file(self._new_name(topic_partition, DELETE_SUFFIX))
            self._directories.rename(logs[topic_partition].directory, deleted_path)
            del logs[topic_partition]
        return deleted_path

    def rename_to_current(self, topic_partition: TopicPartition, open_log: OpenLog) -> Log:
        """Let the future log, which has been closed, be the one that is served; return it as it now is."""
        future = self.future_logs[topic_partition]
        closed = Checkpointed(
            future.high_watermark,
            future.recovery_point,
            future.log_start_offset,
            had_clean_shutdown=True,
            may_have_gaps=future.may_have_gaps,
        )
        with self._storage_errors(f"moving {topic_partition} to"):
            path = self._file(str(topic_partition))
            self._directories.rename(future.directory, path)
            log = self.logs[topic_partition] = open_log(topic_partition, path, closed)
        del self.future_logs[topic_partition]
        return log

    def write_without_deleted(self) -> None:
        """Checkpoint what is left."""
        self.write_high_watermarks()
        self._forget_absent()

    def close(self) -> None:
        """Sync and close every log, checkpoint, and leave the mark of a clean stop."""
        self.write_high_watermarks()
        for log in self.every_log.values():
            log.close()
        self.write_recovery_points()
        self.write_log_start_offsets()
        with self._storage_errors("closing"):
            self._atomic.replace(self._file(CLEAN_SHUTDOWN_FILE), _CLEAN_SHUTDOWN)

    def forget_logs(self) -> list[TopicPartition]:
        """Let go of a directory that failed; return of which replicas it had the log that is served."""
        lost = list(self.logs)
        for log in self.every_log.values():
            self._files.close(log.directory)
        self.logs.clear()
        self.future_logs.clear()
        return lost

    def _take_clean_shutdown_mark(self) -> bool:
        """Return whether there is a mark; there is none afterwards, and a power cut does not bring it back."""
        mark = self._file(CLEAN_SHUTDOWN_FILE)
        if not self._files.exists(mark):
            return False
        self._directories.rename(mark, f"{mark}.taken")
        self._directories.remove(f"{mark}.taken")
        return True

    def _forget_absent(self) -> None:
        present = self.every_log.keys()
        if self._recovery_points.keys() - present:
            self.write_recovery_points()
        if self._log_start_offsets.keys() - present:
            self.write_log_start_offsets()
        if self._cleaner_offsets.keys() - present:
            offsets = {
                key: offset for key, offset in self._cleaner_offsets.items() if key in present
            }
            self._write(CLEANER_OFFSET_CHECKPOINT, offsets)
            self._cleaner_offsets = offsets

    def _new_name(self, topic_partition: TopicPartition, suffix: str) -> str:
        """``<topic>-<partition>.<32 hexadecimal digits><suffix>``, no longer than a name may be, and new each time."""
        self._renamed += 1
        end = f"-{topic_partition.partition}.{self._renamed:032x}{suffix}"
        return topic_partition.topic[: _MAX_NAME - len(end)] + end

    def _read_or_nothing(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._files, self._file(name))
        except KafkaStorageError as error:
            _logger.warning("%s; it counts as empty", error)
            return {}

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        with self._storage_errors(f"writing {name} of"):
            write_offsets(self._atomic, self._file(name), offsets)

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def _storage_errors(self, doing: str) -> StorageErrors:
        return StorageErrors(doing, self.path, self.path)
