"""Opens the segments of one log: finishes what a crash interrupted, verifies what it may have hurt.

* Files that were marked deleted, and indexes without batches, are removed.
* A file that a cleaner had not finished (``.cleaned``) is removed, the segments that it is made of are all there. One
  that it had (``.swap``) takes their place now; but not if it begins behind an unfinished one (KAFKA-6264).
* After a clean stop nothing is verified. Otherwise the segments from the recovery point on are walked, each CRC is
  compared, and the log ends where the first segment had to be cut: what is behind it is removed.
* The log starts at the checkpointed log start offset or at its first segment, whichever is later. If it ends before
  that, everything is removed and it is empty from there on.
* Epochs are those of the batches that were walked; none starts before the log or at its end. Of a log that may have
  gaps those that are known are kept.

Source: kafka.log.LogLoader of Kafka 3.9.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.file_records import FileRecords
from nemesis.reference.log.leader_epoch_file_cache import EpochEntry, LeaderEpochFileCache
from nemesis.reference.log.log_segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    LogSegment,
    segment_file_name,
)
from nemesis.reference.log.recent_batches import RecentBatches
from nemesis.reference.log.transaction_index import TRANSACTION_INDEX_SUFFIX
from nemesis.reference.ports import Disk
from nemesis.reference.protocol.record_batch import RecordBatchHeader

_logger = logging.getLogger(__name__)

_SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")
_INDEX_NAME: Final = re.compile(r"[0-9]{20}\.(time|txn)?index")
_BASE_OFFSET_DIGITS: Final = 20


class LoadedLog(NamedTuple):
    """What there is of a log; at least one segment."""

    segments: list[LogSegment]
    log_start_offset: int
    recovery_point: int
    log_end_offset: int
    walked: RecentBatches | None
    """The producers' batches of the segments that were walked, the last ones of the log; None when none was."""


class LogLoader:
    """Loads one log once. Raises OSError when the disk fails, KafkaStorageError when a file is malformed."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        leader_epoch_cache: LeaderEpochFileCache,
        *,
        index_interval_bytes: int,
        log_start_offset: int,
        recovery_point: int,
        had_clean_shutdown: bool,
        may_have_gaps: bool,
    ) -> None:
        """The two offsets are those that were checkpointed; 0 for none."""
        self._disk = disk
        self._files = disk.files
        self._directories = disk.directories
        self._directory = directory
        self._leader_epoch_cache = leader_epoch_cache
        self._index_interval_bytes = index_interval_bytes
        self._log_start_offset = log_start_offset
        self._recovery_point = recovery_point
        self._had_clean_shutdown = had_clean_shutdown
        self._may_have_gaps = may_have_gaps
        self._epochs: list[EpochEntry] = []
        self._walked: RecentBatches | None = None

    def load(self) -> LoadedLog:
        """Return the log, mended."""
        self._finish_swaps()
        bases = self._remove_leftovers()
        if not bases:
            return self._empty(self._log_start_offset)
        segments = self._open_segments(bases)
        end = segments[-1].next_offset
        start = max(self._log_start_offset, bases[0])
        if end < start:
            _logger.warning("%s ends at %d, before its start %d", self._directory, end, start)
            for segment in reversed(segments):
                segment.remove()
            return self._empty(start)
        self._leader_epoch_cache.truncate_from_end(end)
        self._leader_epoch_cache.truncate_from_start(start)
        is_verified = self._had_clean_shutdown
        recovery_point = end if is_verified else min(self._recovery_point, end)
        return LoadedLog(segments, start, recovery_point, end, self._walked)

    def _empty(self, offset: int) -> LoadedLog:
        self._leader_epoch_cache.truncate_from_end(0)
        segment = LogSegment.create(
            self._disk,
            self._directory,
            offset,
            index_interval_bytes=self._index_interval_bytes,
        )
        return LoadedLog([segment], offset, offset, offset, None)

    def _finish_swaps(self) -> None:
        names = self._directories.list(self._directory)
        cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
        first_cleaned = min(map(_base_offset, cleaned), default=None)
        for name in cleaned:
            self._directories.remove(f"{self._directory}/{name}")
        for name in names:
            if name.endswith(SWAP_SUFFIX):
                if first_cleaned is not None and _base_offset(name) >= first_cleaned:
                    self._directories.remove(f"{self._directory}/{name}")
                else:
                    self._finish_swap(name, names)

    def _finish_swap(self, swap: str, names: Sequence[str]) -> None:
        path, base = f"{self._directory}/{swap}", _base_offset(swap)
        if _SEGMENT_NAME.fullmatch(swap.removesuffix(SWAP_SUFFIX)):
            batches = FileRecords(self._files, path).batches(0, self._files.size(path))
            end = max((header.last_offset for header in batches), default=base)
            for name in names:
                is_replaced = _SEGMENT_NAME.fullmatch(name) or _INDEX_NAME.fullmatch(name)
                if is_replaced and base <= _base_offset(name) <= end:
                    self._directories.remove(f"{self._directory}/{name}")
        self._directories.rename(path, path.removesuffix(SWAP_SUFFIX))

    def _remove_leftovers(self) -> list[int]:
        """Return the base offsets of the segments that remain."""
        names = self._directories.list(self._directory)
        bases = sorted(_base_offset(name) for name in names if _SEGMENT_NAME.fullmatch(name))
        known = set(bases)
        for name in names:
            is_orphan = _INDEX_NAME.fullmatch(name) and _base_offset(name) not in known
            if is_orphan or name.endswith(DELETED_SUFFIX):
                self._directories.remove(f"{self._directory}/{name}")
        return bases

    def _open_segments(self, bases: list[int]) -> list[LogSegment]:
        trusted = self._count_trusted(bases)
        segments = [
            self._open(base, following)
            for base, following in zip(bases[:trusted], [*bases[1:], None], strict=False)
        ]
        for number, base in enumerate(bases[trusted:], trusted):
            size = self._files.size(f"{self._directory}/{segment_file_name(base, LOG_SUFFIX)}")
            segment = self._recover(base)
            segments.append(segment)
            if segment.size < size and number + 1 < len(bases):
                self._remove_segments(bases[number + 1 :])
                break
        if trusted < len(bases) and self._may_have_gaps:
            self._leader_epoch_cache.complete(self._epochs)
        elif trusted < len(bases):
            self._leader_epoch_cache.rebuild(bases[trusted], self._epochs)
        return segments

    def _count_trusted(self, bases: list[int]) -> int:
        """How many of the first segments need no walk."""
        if self._had_clean_shutdown:
            return len(bases)
        # A segment is behind the recovery point unless the next one starts at or before it.
        return sum(following <= self._recovery_point for following in bases[1:])

    def _open(self, base: int, following: int | None) -> LogSegment:
        try:
            return LogSegment.open(
                self._disk,
                self._directory,
                base,
                index_interval_bytes=self._index_interval_bytes,
                next_offset=following,
            )
        except KafkaStorageError as error:
            if following is not None:
                raise
            _logger.warning("%s; the segment is recovered", error)
        return self._recover(base)

    def _recover(self, base: int) -> LogSegment:
        walked = self._walked = self._walked or RecentBatches(base)
        epochs = self._epochs

        def visit(headers: Sequence[RecordBatchHeader]) -> None:
            for epoch, batches in groupby(headers, key=attrgetter("partition_leader_epoch")):
                if not epochs or epochs[-1].epoch != epoch:
                    epochs.append(EpochEntry(epoch, next(batches).base_offset))
            walked.add(headers)

        return LogSegment.recover(
            self._disk,
            self._directory,
            base,
            visit,
            index_interval_bytes=self._index_interval_bytes,
            may_have_gaps=self._may_have_gaps,
        )

    def _remove_segments(self, bases: list[int]) -> None:
        for base in reversed(bases):
            for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES, TRANSACTION_INDEX_SUFFIX):
                self._directories.remove(f"{self._directory}/{segment_file_name(base, suffix)}")


def _base_offset(name: str) -> int:
    return int(name[:_BASE_OFFSET_DIGITS])
