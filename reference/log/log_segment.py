"""One file of record batches, ``<20-digit base offset>.log``, and the index beside it.

Only the last segment of a log is written to. When it is rolled it is synced first, so a crash can hurt the
last segment only; recovery walks that one, verifies each CRC and cuts it at the first batch that is torn, damaged
or does not continue the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reference.log.errors import KafkaStorageError
from reference.log.offset_index import OffsetIndex
from reference.ports import Disk
from reference.protocol.record_batch import (
    HEADER_SIZE,
    RecordBatchHeader,
    crc_matches,
    is_plausible,
    read_header,
)

_WALK_WINDOW = 4096
_RECOVERY_WINDOW = 1 << 20


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name: the base offset in 20 digits, then ``.log`` or ``.index``."""
    return f"{base_offset:020d}{suffix}"


class LogSegment:
    """A run of batches from ``base_offset`` on. All methods raise OSError when the disk fails, KafkaStorageError
    when the file does not hold what was written to it."""

    def __init__(self, disk: Disk, directory: str, base_offset: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        """Last offset + 1."""
        self.size = 0
        """In bytes."""
        self._disk = disk
        self._path = f"{directory}/{segment_file_name(base_offset, '.log')}"
        self._index_path = f"{directory}/{segment_file_name(base_offset, '.index')}"
        self._index = OffsetIndex(base_offset)
        self._max_timestamp: int | None = -1
        self._torn = False

    @classmethod
    def create(cls, disk: Disk, directory: str, base_offset: int) -> LogSegment:
        """Return a new, empty segment; its file exists."""
        segment = cls(disk, directory, base_offset)
        disk.append(segment._path, b"")
        return segment

    @classmethod
    def open_rolled(
        cls, disk: Disk, directory: str, base_offset: int, next_offset: int
    ) -> LogSegment:
        """Open a segment that has a successor, which starts at ``next_offset``. It was synced: no CRC is checked."""
        segment = cls(disk, directory, base_offset)
        segment.size = disk.size(segment._path)
        segment.next_offset = next_offset
        segment._max_timestamp = None
        index = segment._read_index()
        if index is None:
            index = OffsetIndex(base_offset)
            for header in segment._walk(0):
                index.add(header.last_offset, header.position)
        segment._index = index
        return segment

    @classmethod
    def recover(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        visit: Callable[[RecordBatchHeader], None],
    ) -> LogSegment:
        """Open the last segment: keep the longest run of intact batches, cut the rest, show each batch to ``visit``."""
        segment = cls(disk, directory, base_offset)
        written = disk.size(segment._path)
        for header in segment._intact_batches(written):
            segment._take(header, header.position)
            visit(header)
        if segment.size < written:
            disk.truncate(segment._path, segment.size)
        return segment

    def append(self, data: bytes, headers: Sequence[RecordBatchHeader]) -> None:
        """Write the batches, whose headers give positions in ``data``, in one piece."""
        self._cut_torn_tail()
        try:
            self._disk.append(self._path, data)
        except OSError:
            self._torn = True
            raise
        start = self.size
        for header in headers:
            self._take(header, start + header.position)

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
                end = start + self._header_at(start).size_in_bytes
        data = self._disk.read(self._path, start, end - start)
        self._checked_header(data, 0, start)
        return data

    def position_of(self, offset: int) -> int:
        """Return where the batch that holds the offset starts; the size when all batches end before it."""
        if offset >= self.next_offset:
            return self.size
        if offset <= self.base_offset:
            return 0
        recent = self._index.recent_position(offset)
        if recent is not None:
            return recent
        for header in self._walk(self._index.floor_of_offset(offset)):
            if header.last_offset >= offset:
                return header.position
        return self.size

    def truncate_to(self, offset: int) -> None:
        """Cut the batch that holds the offset and all behind it."""
        position = self.position_of(offset)
        if position == self.size:
            return
        next_offset = self._header_at(position).base_offset
        self._disk.truncate(self._path, position)
        self._torn = False
        self._index.truncate(position)
        self.size = position
        self.next_offset = next_offset
        self._max_timestamp = None

    def max_timestamp(self) -> int:
        """Return the largest timestamp of a record, in ms; −1 when the segment is empty."""
        if self._max_timestamp is None:
            self._max_timestamp = max((batch.max_timestamp for batch in self._walk(0)), default=-1)
        return self._max_timestamp

    def first_batch_from_timestamp(self, timestamp: int) -> RecordBatchHeader | None:
        """Return the header of the first batch with a record at or after the time."""
        if self.max_timestamp() < timestamp:
            return None
        return next((h for h in self._walk(0) if h.max_timestamp >= timestamp), None)

    def flush(self) -> None:
        """Sync the batches, and nothing else: once the segment is rolled nobody looks for a torn tail."""
        self._cut_torn_tail()
        self._disk.fsync(self._path)

    def write_index(self) -> None:
        """Put the index on disk; it describes the segment until that is written to again."""
        self._disk.replace(self._index_path, self._index.to_bytes())

    def close(self) -> None:
        self._disk.close(self._path)
        self._disk.close(self._index_path)

    def remove(self) -> None:
        """Delete the files."""
        self._disk.remove(self._path)
        self._disk.remove(self._index_path)

    def _cut_torn_tail(self) -> None:
        """Remove what an append left that failed."""
        if self._torn:
            self._disk.truncate(self._path, self.size)
            self._torn = False

    def _take(self, header: RecordBatchHeader, position: int) -> None:
        last_offset = header.last_offset
        self._index.add(last_offset, position)
        self.size = position + header.size_in_bytes
        self.next_offset = last_offset + 1
        if self._max_timestamp is not None and header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp

    def _read_index(self) -> OffsetIndex | None:
        if not self._disk.exists(self._index_path):
            return None
        data = self._disk.read(self._index_path, 0, self._disk.size(self._index_path))
        self._disk.close(self._index_path)
        return OffsetIndex.from_bytes(data, base_offset=self.base_offset, segment_size=self.size)

    def _header_at(self, position: int) -> RecordBatchHeader:
        return self._checked_header(self._disk.read(self._path, position, HEADER_SIZE), 0, position)

    def _checked_header(self, data: bytes, at: int, position: int) -> RecordBatchHeader:
        """Return a header of the part that recovery has vouched for; the file was changed behind our back if not."""
        if len(data) - at >= HEADER_SIZE:
            header = read_header(data, at, position)
            if is_plausible(header):
                return header
        raise KafkaStorageError(f"{self._path} has no record batch at {position}")

    def _batch_boundary(self, position: int) -> int:
        """Return the largest start of a batch that is not behind the position."""
        boundary = 0
        for header in self._walk(self._index.floor_of_position(position)):
            if header.position > position:
                break
            boundary = header.position
        return boundary

    def _walk(self, position: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers from this position, the start of a batch, to the end."""
        window, start = b"", position
        while position < self.size:
            at = position - start
            if at + HEADER_SIZE > len(window):
                window, start, at = self._disk.read(self._path, position, _WALK_WINDOW), position, 0
            header = self._checked_header(window, at, position)
            yield header
            position += header.size_in_bytes

    def _intact_batches(self, written: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers of the batches that are whole, have a matching CRC and continue one another."""
        window, start, position = b"", 0, 0
        next_offset = self.base_offset
        while written - position >= HEADER_SIZE:
            at = position - start
            if at + HEADER_SIZE > len(window):
                window = self._disk.read(self._path, position, _RECOVERY_WINDOW)
                start, at = position, 0
            header = read_header(window, at, position)
            size = header.size_in_bytes
            if not is_plausible(header) or size > written - position:
                return
            if at + size > len(window):
                window = self._disk.read(self._path, position, max(size, _RECOVERY_WINDOW))
                start, at = position, 0
            if header.base_offset != next_offset or not crc_matches(window, header, at):
                return
            yield header
            position += size
            next_offset = header.last_offset + 1
