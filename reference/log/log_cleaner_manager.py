"""Which log is to be compacted next, which are being compacted, and up to where each is.

The dirty part of a log is what lies behind its entry in ``cleaner-offset-checkpoint``. Of that may be cleaned: whole
segments, never the last one with records, nothing at or above the high watermark, and nothing that is younger than
``min.compaction.lag.ms``. A record that is not committed may yet be truncated, and must not supersede one that is. Nor
may a record of a transaction that is not decided: nothing at or above the last stable offset is cleaned.

The log with the largest dirty part of all that could be cleaned comes first, if that part is more than
``min.cleanable.dirty.ratio``, or if the log has something older than ``max.compaction.lag.ms``.

A log that is truncated, deleted, moved to another directory, or goes offline while it is cleaned is given up: the
cleaner finds out when it goes on, and touches nothing any more. One in which the cleaner found damage is not tried
again in this process life.

Source: kafka.log.LogCleanerManager of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from nemesis.reference.log.cleaner import LogToClean
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_directory import LogDirectory
from nemesis.reference.log.log_segment import LogSegment
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import WallClock

_NOTHING: Final = 0.0


class LogCleaningAbortedError(Exception):
    """The log was truncated or taken away while it was cleaned: the cleaner lets go of it."""


class LogCleanerManager:
    """Not for concurrent use: called from the broker's one loop."""

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        directories: Mapping[str, LogDirectory],
        wall_clock: WallClock,
    ) -> None:
        """Both mappings are the log manager's, as they are at any time."""
        self._logs = logs
        self._directories = directories
        self._wall_clock = wall_clock
        self._in_progress: dict[TopicPartition, LogToClean] = {}
        self._uncleanable: dict[TopicPartition, Log] = {}

    def is_in_progress(self, log: Log) -> bool:
        cleanable = self._in_progress.get(log.topic_partition)
        return cleanable is not None and cleanable.log is log

    def grab_filthiest_compacted_log(self) -> LogToClean | None:
        """Return the log that is to be cleaned now, in progress from now on; None when there is none."""
        best, best_ratio = None, _NOTHING
        now_ms = self._wall_clock()
        for topic_partition, log in self._logs.items():
            if (
                log.config.is_compact
                and topic_partition not in self._in_progress
                and self._uncleanable.get(topic_partition) is not log
            ):
                cleanable = self._cleanable(log, now_ms)
                ratio = dirty_ratio(cleanable)
                if ratio > best_ratio and (
                    ratio > log.config.min_cleanable_dirty_ratio or _is_overdue(cleanable, now_ms)
                ):
                    best, best_ratio = cleanable, ratio
        if best is not None:
            self._in_progress[best.log.topic_partition] = best
        return best

    def check_done(self, cleanable: LogToClean) -> None:
        """Raise LogCleaningAbortedError if the cleaning was given up."""
        if self._in_progress.get(cleanable.log.topic_partition) is not cleanable:
            raise LogCleaningAbortedError(f"{cleanable.log.topic_partition}")

    def abort_cleaning(self, log: Log) -> None:
        """Give up the cleaning of the log, if there is one."""
        if self.is_in_progress(log):
            del self._in_progress[log.topic_partition]

    def note_gaps(self, log: Log) -> None:
        """Checkpoint that the log may have gaps. Raises KafkaStorageError."""
        self._directories[log.log_dir].write_cleaner_offset(
            log.topic_partition, log.log_start_offset
        )

    def done_cleaning(self, cleanable: LogToClean, end_offset: int) -> None:
        """Checkpoint up to where the log is clean. Raises KafkaStorageError."""
        log = cleanable.log
        del self._in_progress[log.topic_partition]
        self._directories[log.log_dir].write_cleaner_offset(log.topic_partition, end_offset)

    def mark_uncleanable(self, cleanable: LogToClean) -> None:
        """Do not try this log again."""
        log = cleanable.log
        self.abort_cleaning(log)
        self._uncleanable[log.topic_partition] = log

    def _cleanable(self, log: Log, now_ms: int) -> LogToClean:
        checkpointed = self._directories[log.log_dir].cleaner_offset(log.topic_partition)
        first_dirty = log.log_start_offset if checkpointed is None else checkpointed
        if not log.log_start_offset <= first_dirty <= log.log_end_offset:
            first_dirty = log.log_start_offset
        first_uncleanable = first_uncleanable_offset(log, first_dirty, now_ms)
        return LogToClean(log, first_dirty, first_uncleanable, log.high_watermark)


def first_uncleanable_offset(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    """Return where the first segment starts that may not be cleaned."""
    segments = log.segments
    last = next((s for s in reversed(segments) if s.size > 0), segments[0])
    end = min(log.last_stable_offset, last.base_offset)
    if log.config.min_compaction_lag_ms > 0:
        latest_ms = now_ms - log.config.min_compaction_lag_ms
        for segment, behind in pairwise(segments):
            if behind.base_offset > first_dirty_offset and segment.max_timestamp > latest_ms:
                end = min(end, segment.base_offset)
                break
    starts = [segment.base_offset for segment in segments if segment.base_offset <= end]
    return starts[-1] if starts else segments[0].base_offset


def dirty_ratio(cleanable: LogToClean) -> float:
    """Return which part of what could be cleaned is dirty; 0 when nothing is."""
    dirty = sum(segment.size for segment in _dirty_segments(cleanable))
    clean = sum(
        segment.size
        for segment in cleanable.log.segments
        if segment.next_offset <= cleanable.first_dirty_offset
    )
    return dirty / (clean + dirty) if dirty else _NOTHING


def _is_overdue(cleanable: LogToClean, now_ms: int) -> bool:
    oldest_ms = now_ms - cleanable.log.config.max_compaction_lag_ms
    return any(0 <= segment.first_timestamp < oldest_ms for segment in _dirty_segments(cleanable))


def _dirty_segments(cleanable: LogToClean) -> Sequence[LogSegment]:
    return [
        segment
        for segment in cleanable.log.segments
        if segment.next_offset > cleanable.first_dirty_offset
        and segment.base_offset < cleanable.first_uncleanable_offset
    ]
