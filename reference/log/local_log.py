"""The segments of one log on disk: append to the last one, read from any, roll, cut, sync, delete.

An append reaches the page cache before it returns and is not synced (``flush.messages``, ``flush.ms``): it survives
the end of the process, replication protects it against the loss of the machine. What lies below the recovery point was
synced; only what is above it can be hurt by a crash, and is verified when the log is opened again. A segment is synced
when the next one begins.

What is deleted is renamed at once and removed after ``file.delete.delay.ms``. What a cleaner has written takes the
place of the segments that it was made of in steps that a crash may interrupt anywhere: ``.cleaned`` becomes ``.swap``,
from then on opening the log finishes the rest (``log_loader``); the old files are renamed; ``.swap`` becomes ``.log``.

Source: kafka.log.LocalLog of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.log.log_segment import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    LogSegment,
    segment_file_name,
)
from nemesis.reference.log.offset_index import MAX_RELATIVE_OFFSET
from nemesis.reference.log.storage_errors import StorageErrors
from nemesis.reference.log.transaction_index import TRANSACTION_INDEX_SUFFIX
from nemesis.reference.model import AbortedTransaction, TopicPartition
from nemesis.reference.ports import Disk, WallClock
from nemesis.reference.protocol.record_batch import RecordBatchHeader

DeleteLater = Callable[[Sequence[str], int], None]
"""Removes these files after so many ms."""


class LocalLog:
    """Every method that touches the disk raises KafkaStorageError when that fails."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        *,
        disk: Disk,
        config: LogConfig,
        wall_clock: WallClock,
        delete_later: DeleteLater | None,
    ) -> None:
        """``delete_later`` is given what was renamed; without one it is removed at once."""
        self.topic_partition = topic_partition
        self.directory = directory
        self.log_dir = directory.rpartition("/")[0]
        self.config = config
        """Counts from the next append on; the topic's settings may change it at any time."""
        self.log_end_offset = 0
        self.recovery_point = 0
        """What lies below was synced."""
        self.last_flush_ms = wall_clock()
        self._disk = disk
        self._files = disk.files
        self._directories = disk.directories
        self._wall_clock = wall_clock
        self._delete_later = delete_later or self._delete_now
        self._segments: list[LogSegment] = []

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[LogSegment]:
        """By offset; the last one is written to."""
        return self._segments

    @property
    def unflushed_messages(self) -> int:
        """How many records a power cut might take."""
        return self.log_end_offset - self.recovery_point

    def flush(self) -> None:
        """Sync what was appended."""
        with self._storage_errors("flushing"):
            self._segments[-1].flush()
        self._note_flushed(self.log_end_offset)

    def roll(self) -> LogSegment:
        """Sync the last segment and start the next one; if the last one is empty, it is the next one already."""
        last = self._segments[-1]
        if last.size == 0 and last.base_offset == self.log_end_offset:
            return last
        with self._storage_errors("rolling"):
            last.flush()
            last.write_indexes()
            self._note_flushed(self.log_end_offset)
            self._segments.append(self._new_segment(self.log_end_offset))
        return self._segments[-1]

    def create_cleaned_segment(self, base_offset: int) -> LogSegment:
        """Return an empty segment for a cleaner to fill; a file that an earlier one left is removed."""
        with self._storage_errors("cleaning"):
            for suffix in (LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX):
                name = segment_file_name(base_offset, suffix)
                self._directories.remove(f"{self.directory}/{name}{CLEANED_SUFFIX}")
            return self._new_segment(base_offset, CLEANED_SUFFIX)

    def replace_segments(self, cleaned: LogSegment, old: Sequence[LogSegment]) -> None:
        """Let a segment, which is synced, take the place of some that follow one another."""
        index = self._segments.index(old[0])
        cleaned.next_offset = self._segments[index + len(old)].base_offset
        with self._storage_errors("cleaning"):
            cleaned.change_file_suffix(SWAP_SUFFIX)
            self._segments[index : index + len(old)] = [cleaned]
            paths = [path for segment in old for path in segment.mark_deleted()]
            cleaned.change_file_suffix("")
            cleaned.write_indexes()
        self._delete_later(paths, self.config.file_delete_delay_ms)

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in the range, in the sequence of their markers."""
        collected: list[AbortedTransaction] = []
        for segment in self._segments[self._index_of(start_offset) :]:
            if segment.transactions.collect(start_offset, upper_bound_offset, collected):
                break
        return collected

    def close(self) -> None:
        """Sync what was appended, write the indexes, let go of the files: the log can be opened without a walk."""
        if self.unflushed_messages > 0:
            self.flush()
        with self._storage_errors("closing"):
            self._segments[-1].write_indexes()
        self._files.close(self.directory)

    def _append_to_segment(self, records: bytes, headers: Sequence[RecordBatchHeader]) -> None:
        """Write the batches, in a new segment if they must not go into the last one."""
        segment = self._segments[-1]
        if self._should_roll(segment, len(records), headers):
            segment = self.roll()
        segment.append(records, headers)

    def _should_roll(
        self, segment: LogSegment, more_bytes: int, headers: Sequence[RecordBatchHeader]
    ) -> bool:
        if segment.size == 0:
            return False
        config = self.config
        age_ms = headers[-1].max_timestamp - segment.first_timestamp
        return (
            segment.size + more_bytes > config.segment_bytes
            or (age_ms > config.max_segment_ms and segment.first_timestamp >= 0)
            or headers[-1].last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
            or segment.index_bytes >= config.segment_index_bytes
        )

    def _read_segment(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, *, min_one_message: bool
    ) -> bytes:
        """Read from the segment that holds the offset, or from the next one that has something behind it."""
        index = self._index_of(start_offset)
        while True:
            segment = self._segments[index]
            data = segment.read(
                start_offset, max_bytes, upper_bound_offset, min_one_message=min_one_message
            )
            index += 1
            if (
                data
                or index == len(self._segments)
                or self._segments[index].base_offset >= upper_bound_offset
                or segment.position_of(start_offset) < segment.size
            ):
                return data

    def _index_of(self, offset: int) -> int:
        """Of the segment with the largest base offset that is not above the offset; most reads want the last one."""
        segments = self._segments
        index = len(segments) - 1
        while index > 0 and segments[index].base_offset > offset:
            index -= 1
        return index

    def _truncate_segments(self, offset: int) -> None:
        """Remove the batches from the offset on."""
        try:
            while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
                self._segments[-1].remove()
                del self._segments[-1]
            self._segments[-1].truncate_to(offset)
        finally:
            self.log_end_offset = self._segments[-1].next_offset
            self.recovery_point = min(self.recovery_point, self.log_end_offset)

    def _restart_at(self, offset: int) -> None:
        """Remove every segment and start an empty one at the offset."""
        while self._segments:
            self._segments[-1].remove()
            del self._segments[-1]
        self._segments.append(self._new_segment(offset))
        self.log_end_offset = self.recovery_point = offset

    def _delete_first_segments(self, count: int) -> None:
        """Take the first segments away, never the last one."""
        first_segments = self._segments[:count]
        del self._segments[:count]
        paths = [path for segment in first_segments for path in segment.mark_deleted()]
        self._delete_later(paths, self.config.file_delete_delay_ms)

    def _new_segment(self, base_offset: int, file_suffix: str = "") -> LogSegment:
        return LogSegment.create(
            self._disk,
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            file_suffix=file_suffix,
        )

    def _note_flushed(self, offset: int) -> None:
        self.recovery_point = max(self.recovery_point, offset)
        self.last_flush_ms = self._wall_clock()

    def _delete_now(self, paths: Sequence[str], _delay_ms: int) -> None:
        for path in paths:
            self._directories.remove(path)

    def _storage_errors(self, doing: str) -> StorageErrors:
        return StorageErrors(doing, self.topic_partition, self.log_dir)
