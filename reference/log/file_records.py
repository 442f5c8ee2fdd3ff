"""The record batches in a file, read in order.

Two readers: one trusts what recovery has vouched for and takes anything else for a failed medium, one trusts nothing
and is what recovery itself uses.

Source: org.apache.kafka.common.record.FileRecords of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.ports import Files
from nemesis.reference.protocol.record_batch import (
    CRC_START,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    RecordBatchHeader,
    is_plausible,
    read_header,
)

_WALK_WINDOW: Final = 4096
_RECOVERY_WINDOW: Final = 1 << 20


class FileRecords:
    """One file. Raises OSError when the disk fails."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def header_at(self, position: int) -> RecordBatchHeader:
        """Return the header of the batch that starts there; raises KafkaStorageError when none does."""
        return self.checked_header(self._files.read(self.path, position, HEADER_SIZE), 0, position)

    def checked_header(self, data: bytes, header_start: int, position: int) -> RecordBatchHeader:
        """Return the header at ``data[at]``, which was read at that position of the file.

        Raises KafkaStorageError when there is none: the file was changed behind our back.
        """
        if len(data) - header_start >= HEADER_SIZE:
            header = read_header(data, header_start, position)
            if is_plausible(header):
                return header
        raise KafkaStorageError(f"{self.path} has no record batch at {position}")

    def batches(self, position: int, end: int) -> Iterator[RecordBatchHeader]:
        """Yield the headers from this position, the start of a batch, to the end; raises as ``header_at`` does."""
        window, start = b"", position
        while position < end:
            header_start = position - start
            if header_start + HEADER_SIZE > len(window):
                window, start, header_start = (
                    self._files.read(self.path, position, _WALK_WINDOW),
                    position,
                    0,
                )
            header = self.checked_header(window, header_start, position)
            yield header
            position += header.size_in_bytes

    def intact_batches(
        self, base_offset: int, size: int, *, may_have_gaps: bool
    ) -> Iterator[list[RecordBatchHeader]]:
        """Yield the headers of the batches that are whole, have a matching CRC and continue one another, as many at
        once as were read at once.

        The first that is not or does not ends it. The CRC covers no offset: only a gap tells of damage there, and where
        there may be gaps, only an overlap.
        """
        position, next_offset, wanted = 0, base_offset, _RECOVERY_WINDOW
        while size - position >= HEADER_SIZE:
            window = self._files.read(self.path, position, wanted)
            headers, missing = _intact_run(
                window, position, size, next_offset, may_have_gaps=may_have_gaps
            )
            yield headers
            if headers:
                position = headers[-1].position + headers[-1].size_in_bytes
                next_offset = headers[-1].last_offset + 1
            elif missing <= wanted:
                return
            if missing == 0:
                return
            wanted = max(missing, _RECOVERY_WINDOW)


def _intact_run(
    window: bytes, start: int, size: int, next_offset: int, *, may_have_gaps: bool
) -> tuple[list[RecordBatchHeader], int]:
    """The headers of the intact batches of a window, which begins at ``start`` in a file of that size.

    And how many bytes it takes to see the batch behind them; 0 if there is none that could be intact.
    """
    # A recovery may see millions of batches: ``is_plausible`` and ``crc_matches`` are written out here.
    view = memoryview(window)
    headers: list[RecordBatchHeader] = []
    header_start, end = 0, len(window)
    while header_start + HEADER_SIZE <= end:
        header = read_header(view, header_start, start + header_start)
        base, batch_length, _, magic, crc, _, last_offset_delta = header[:7]
        length = batch_length + LOG_OVERHEAD
        plausible = magic == CURRENT_MAGIC and length >= HEADER_SIZE and last_offset_delta >= 0
        behind = header_start + length
        if not plausible or start + behind > size:
            return headers, 0
        if behind > end:
            return headers, length
        continues = base == next_offset or (may_have_gaps and base > next_offset)
        if not continues or crc32c(view[header_start + CRC_START : behind]) != crc:
            return headers, 0
        headers.append(header)
        next_offset = base + last_offset_delta + 1
        header_start = behind
    return headers, HEADER_SIZE
