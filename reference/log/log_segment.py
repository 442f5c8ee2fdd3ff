"""One file of record batches, ``<20-digit base offset>.log``, and the three indexes beside it.

Only the last segment of a log is written to. The indexes are in memory meanwhile; on disk they describe a segment
that was rolled or closed, and are rebuilt from the batches where they are missing or do not fit. Recovery walks the
batches, verifies each CRC and cuts the file at the first one that is torn, damaged or not behind the one before:
right behind, unless the log may have gaps.

Source: org.apache.kafka.storage.internals.log.LogSegment of Kafka 3.9; its files can be read by kafka-dump-log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.file_records import FileRecords
from nemesis.reference.log.offset_index import OffsetIndex
from nemesis.reference.log.time_index import TimeIndex
from nemesis.reference.log.transaction_index import TRANSACTION_INDEX_SUFFIX, TransactionIndex
from nemesis.reference.ports import Disk
from nemesis.reference.protocol.record_batch import RecordBatchHeader

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIXES: Final = (".index", ".timeindex")
_FILE_SUFFIXES: Final = (LOG_SUFFIX, *INDEX_SUFFIXES, TRANSACTION_INDEX_SUFFIX)
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
"""A file that a cleaner writes."""
SWAP_SUFFIX: Final = ".swap"
"""A file that a cleaner has written, and that is about to replace those that it was made of."""


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name: the base offset in 20 digits, then ``.log``, ``.index`` or ``.timeindex``."""
    return f"{base_offset:020d}{suffix}"


class LogSegment:
    """A run of batches from ``base_offset`` on. All methods raise OSError when the disk fails, KafkaStorageError
    when the file does not hold what was written to it."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int
    ) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        """Last offset + 1, or the base offset of the segment behind it."""
        self.size = 0
        """In bytes."""
        self.max_timestamp = -1
        """The largest of a record, in ms; −1 when no record has one."""
        self.first_timestamp = -1
        """That of the first batch, which counts for ``segment.ms``."""
        self._offset_of_max_timestamp = base_offset
        self._files = disk.files
        self._directories = disk.directories
        self._atomic = disk.atomic
        self._index_interval_bytes = index_interval_bytes
        self._path_stem = f"{directory}/{segment_file_name(base_offset, '')}"
        self._use_file("")
        self._offset_index = OffsetIndex(base_offset, index_interval_bytes)
        self._time_index = TimeIndex(base_offset)
        self.transactions = TransactionIndex(disk, self._path_stem + TRANSACTION_INDEX_SUFFIX)
        """Its aborted transactions."""
        self._torn = False

    @classmethod
    def create(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        file_suffix: str = "",
    ) -> LogSegment:
        """Return a new, empty segment; its file exists."""
        segment = cls(disk, directory, base_offset, index_interval_bytes)
        segment._use_file(file_suffix)
        segment.transactions.use_path(segment._transaction_path(file_suffix))
        disk.files.append(segment._path, b"")
        return segment

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        next_offset: int | None,
    ) -> LogSegment:
        """Open a segment that was synced, or closed with its log: no CRC is checked.

        ``next_offset`` is where the following one starts; None for the last one of a log. Raises KafkaStorageError
        when its end is not that of a batch.
        """
        segment = cls(disk, directory, base_offset, index_interval_bytes)
        segment.size = disk.files.size(segment._path)
        if not segment._read_indexes(next_offset):
            segment._offset_index = OffsetIndex(base_offset, index_interval_bytes)
            segment._time_index = TimeIndex(base_offset)
        start = segment._offset_index.last_position
        if next_offset is None or not (start or len(segment._time_index)):
            size, segment.size = segment.size, start
            segment._take(list(segment._records.batches(start, size)))
            if segment.size != size:
                raise KafkaStorageError(f"{segment._path} ends within a record batch")
        if next_offset is not None:
            segment.next_offset = next_offset
        segment._note_first_timestamp()
        segment.transactions.load(base_offset)
        return segment

    @classmethod
    def recover(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        visit: Callable[[Sequence[RecordBatchHeader]], None],
        *,
        index_interval_bytes: int,
        may_have_gaps: bool = False,
    ) -> LogSegment:
        """Open a segment that may be damaged: keep the longest run of intact batches, show them to ``visit``, some at
        a time, cut the rest."""
        segment = cls(disk, directory, base_offset, index_interval_bytes)
        segment.transactions.reset()
        written = disk.files.size(segment._path)
        for headers in segment._records.intact_batches(
            base_offset, written, may_have_gaps=may_have_gaps
        ):
            segment._take(headers)
            visit(headers)
        segment._note_first_timestamp()
        if segment.size < written:
            disk.files.truncate(segment._path, segment.size)
        return segment

    @property
    def index_bytes(self) -> int:
        """The size of the larger index, in entries of the offset index (8 bytes) and the time index (12 bytes)."""
        return max(len(self._offset_index) * 8, (len(self._time_index) + 1) * 12)

    def append(self, data: bytes, headers: Sequence[RecordBatchHeader]) -> None:
        """Write the batches, whose headers give positions in ``data``, in one piece."""
        self._cut_torn_tail()
        try:
            self._files.append(self._path, data)
        except OSError:
            self._torn = True
            raise
        start = self.size
        if start == 0 and headers:
            self.first_timestamp = headers[0].max_timestamp
        self._take(headers, start)

    def read(
        self, start_offset: int, max_bytes: int, upper_bound_offset: int, *, min_one_message: bool
    ) -> bytes:
        """Return whole batches, from the one that holds ``start_offset`` on, that end below the upper bound."""
        start = self.position_of(start_offset)
        end = self.position_of(upper_bound_offset)
        if start >= end:
            return b""
        if end - start > max_bytes:
            end = self._batch_boundary(start + max_bytes)
            if end <= start:
                if not min_one_message:
                    return b""
                end = start + self._records.header_at(start).size_in_bytes
        data = self._files.read(self._path, start, end - start)
        self._records.checked_header(data, 0, start)
        return data

    def position_of(self, offset: int) -> int:
        """Return where the batch that holds the offset starts; the size when all batches end before it."""
        if offset >= self.next_offset:
            return self.size
        if offset <= self.base_offset:
            return 0
        recent = self._offset_index.recent_position(offset)
        if recent is not None:
            return recent
        for header in self._records.batches(self._offset_index.floor_of_offset(offset), self.size):
            if header.last_offset >= offset:
                return header.position
        return self.size

    def truncate_to(self, offset: int) -> None:
        """Cut the batch that holds the offset and all behind it; the segment ends there or before, in a gap, too."""
        position = self.position_of(offset)
        self.transactions.truncate_to(offset)
        if position == self.size:
            self.next_offset = min(self.next_offset, max(offset, self.base_offset))
        else:
            next_offset = min(self._records.header_at(position).base_offset, offset)
            self._files.truncate(self._path, position)
            self._torn = False
            self._forget_from(position, next_offset)

    def _forget_from(self, position: int, next_offset: int) -> None:
        """Let the indexes and the largest timestamp be those of what is left."""
        self._offset_index.truncate(position)
        self._time_index.truncate_to(next_offset)
        self.size = position
        self.next_offset = next_offset
        self.max_timestamp, self._offset_of_max_timestamp = self._time_index.last
        for header in self._records.batches(self._offset_index.last_position, position):
            self._note_timestamp(header)
        self._note_first_timestamp()

    def first_batch_from_timestamp(
        self, timestamp: int, start_offset: int
    ) -> RecordBatchHeader | None:
        """Return the header of the first batch with a record at or after the time and at or behind the offset."""
        if self.max_timestamp < timestamp:
            return None
        floor = max(self._time_index.lookup(timestamp), start_offset)
        for header in self._records.batches(self._offset_index.floor_of_offset(floor), self.size):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                return header
        return None

    def batch_of_max_timestamp(self) -> bytes | None:
        """Return the first batch with the latest time of the segment; None when no record has a time."""
        if self.max_timestamp < 0:
            return None
        header = self.first_batch_from_timestamp(self.max_timestamp, self.base_offset)
        if header is None:
            return None
        return self.read_batch(header)

    def batches_from(self, position: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers of the batches from the one that starts there on; ``position`` is that in the file."""
        return self._records.batches(position, self.size)

    def read_batch(self, header: RecordBatchHeader) -> bytes:
        """Return the batch of which ``header.position`` is the position in the file."""
        return self._files.read(self._path, header.position, header.size_in_bytes)

    def flush(self) -> None:
        """Sync the batches and the aborted transactions, and nothing else."""
        self._cut_torn_tail()
        self._files.fsync(self._path)
        self.transactions.flush()

    def change_file_suffix(self, suffix: str) -> None:
        """Rename the file of batches and that of aborted transactions; the suffix follows their names."""
        former = self._path
        # Opening the log finishes with the file of batches: a swap file of batches has its aborted transactions beside
        # it under the same suffix, or has none.
        if suffix:
            self.transactions.use_path(self._transaction_path(suffix))
        self._use_file(suffix)
        self._directories.rename(former, self._path)
        if not suffix:
            self.transactions.use_path(self._transaction_path(suffix))

    def write_indexes(self) -> None:
        """Put the indexes on disk; they describe the segment until that is written to again."""
        self._time_index.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        indexes = (self._offset_index.to_bytes(), self._time_index.to_bytes())
        for suffix, data in zip(INDEX_SUFFIXES, indexes, strict=True):
            self._atomic.replace(self._path_stem + suffix, data)

    def close(self) -> None:
        """Let go of the files."""
        for suffix in _FILE_SUFFIXES:
            self._files.close(self._path_stem + suffix)

    def mark_deleted(self) -> list[str]:
        """Rename the files to ``*.deleted``, the batches first; return their names.

        Opening the log removes what was marked, and indexes without batches.
        """
        renamed = []
        for suffix in _FILE_SUFFIXES:
            path = self._path_stem + suffix
            if self._files.exists(path):
                self._directories.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def remove(self) -> None:
        """Delete the files at once."""
        self._directories.remove(self._path)
        for suffix in INDEX_SUFFIXES:
            self._directories.remove(self._path_stem + suffix)
        self.transactions.remove()

    def _transaction_path(self, suffix: str) -> str:
        return self._path_stem + TRANSACTION_INDEX_SUFFIX + suffix

    def _use_file(self, suffix: str) -> None:
        self._path = self._path_stem + LOG_SUFFIX + suffix
        self._records = FileRecords(self._files, self._path)

    def _cut_torn_tail(self) -> None:
        """Remove what an append left that failed."""
        if self._torn:
            self._files.truncate(self._path, self.size)
            self._torn = False

    def _take(self, headers: Sequence[RecordBatchHeader], start: int = 0) -> None:
        """Take note of the next batches; their positions count from ``start``. No calls for each: recovery takes
        millions."""
        index, max_timestamp = self._offset_index, self.max_timestamp
        for header in headers:
            if header.max_timestamp > max_timestamp:
                max_timestamp = self.max_timestamp = header.max_timestamp
                self._offset_of_max_timestamp = header.base_offset + header.last_offset_delta
            if start + header.position > index.next_entry_after:
                index.add(header.last_offset, start + header.position)
                self._time_index.maybe_append(max_timestamp, self._offset_of_max_timestamp)
        index.note_recent(headers, start)
        if headers:
            self.size = start + headers[-1].position + headers[-1].size_in_bytes
            self.next_offset = headers[-1].last_offset + 1

    def _note_timestamp(self, header: RecordBatchHeader) -> None:
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self._offset_of_max_timestamp = header.last_offset

    def _note_first_timestamp(self) -> None:
        self.first_timestamp = self._records.header_at(0).max_timestamp if self.size > 0 else -1

    def _read_indexes(self, next_offset: int | None) -> bool:
        """Take the indexes from disk; False when one is missing or cannot be this segment's."""
        contents = [self._read_file(self._path_stem + suffix) for suffix in INDEX_SUFFIXES]
        if contents[0] is None or contents[1] is None:
            return False
        offsets = OffsetIndex.from_bytes(
            contents[0],
            base_offset=self.base_offset,
            interval_bytes=self._index_interval_bytes,
            segment_size=self.size,
        )
        times = TimeIndex.from_bytes(
            contents[1],
            base_offset=self.base_offset,
            next_offset=2**63 - 1 if next_offset is None else next_offset,
        )
        if offsets is None or times is None:
            return False
        self._offset_index, self._time_index = offsets, times
        self.max_timestamp, self._offset_of_max_timestamp = times.last
        return True

    def _read_file(self, path: str) -> bytes | None:
        if not self._files.exists(path):
            return None
        data = self._files.read(path, 0, self._files.size(path))
        self._files.close(path)
        return data

    def _batch_boundary(self, position: int) -> int:
        """Return the largest start of a batch that is not behind the position."""
        boundary = 0
        for header in self.batches_from(self._offset_index.floor_of_position(position)):
            if header.position > position:
                break
            boundary = header.position
        return boundary
