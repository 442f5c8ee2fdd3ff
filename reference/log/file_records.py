"""The record batches in a file, read in order.

Two readers: one trusts what recovery has vouched for and takes anything else for a failed medium, one trusts nothing
and is what recovery itself uses.

Source: org.apache.kafka.common.record.FileRecords of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reference.log.errors import KafkaStorageError
from reference.ports import Disk
from reference.protocol.record_batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    RecordBatchHeader,
    crc_matches,
    is_plausible,
    read_header,
)

_WALK_WINDOW: Final = 4096
_RECOVERY_WINDOW: Final = 1 << 20


class FileRecords:
    """One file. Raises OSError when the disk fails."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def header_at(self, position: int) -> RecordBatchHeader:
        """Return the header of the batch that starts there; raises KafkaStorageError when none does."""
        return self.checked_header(self._disk.read(self.path, position, HEADER_SIZE), 0, position)

    def checked_header(self, data: bytes, at: int, position: int) -> RecordBatchHeader:
        """Return the header at ``data[at]``, which was read at that position of the file.

        Raises KafkaStorageError when there is none: the file was changed behind our back.
        """
        if len(data) - at >= HEADER_SIZE:
            header = read_header(data, at, position)
            if is_plausible(header):
                return header
        raise KafkaStorageError(f"{self.path} has no record batch at {position}")

    def batches(self, position: int, end: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers from this position, the start of a batch, to the end; raises as ``header_at`` does."""
        window, start = b"", position
        while position < end:
            at = position - start
            if at + HEADER_SIZE > len(window):
                window, start, at = self._disk.read(self.path, position, _WALK_WINDOW), position, 0
            header = self.checked_header(window, at, position)
            yield header
            position += header.size_in_bytes

    def intact_batches(
        self, base_offset: int, size: int, *, may_have_gaps: bool
    ) -> Iterator[RecordBatchHeader]:
        """Yield the headers of the batches that are whole, have a matching CRC and continue one another.

        The first that is not or does not ends it. The CRC covers no offset: only a gap tells of damage there, and where
        there may be gaps, only an overlap.
        """
        window, start, position = b"", 0, 0
        next_offset = base_offset
        while size - position >= HEADER_SIZE:
            at = position - start
            if at + HEADER_SIZE > len(window):
                window = self._disk.read(self.path, position, _RECOVERY_WINDOW)
                start, at = position, 0
            header = read_header(window, at, position)
            length = header.batch_length + LOG_OVERHEAD
            if not is_plausible(header) or length > size - position:
                return
            if at + length > len(window):
                window = self._disk.read(self.path, position, max(length, _RECOVERY_WINDOW))
                start, at = position, 0
            is_behind = header.base_offset == next_offset or (
                may_have_gaps and header.base_offset > next_offset
            )
            if not is_behind or not crc_matches(window, header, at):
                return
            yield header
            position += length
            next_offset = header.base_offset + header.last_offset_delta + 1
