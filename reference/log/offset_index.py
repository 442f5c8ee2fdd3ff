"""A sparse map from offsets to byte positions of one segment, in Kafka's ``.index`` format.

An entry (last offset of a batch, position of the batch) is added for the first batch more than
``index.interval.bytes`` after the last one; a look-up finds the nearest entry before what is wanted and the segment
walks on from there. In memory while the segment is written to, on disk once it is rolled or closed; rebuilt from the
batches when the file is missing or does not fit.

Of the batches written last every position is known as well, though only in memory: that is where nearly everybody
reads, and a walk over headers would cost more than the read.

On disk: 8 bytes per entry, big-endian: offset relative to the segment's base, position; both int32.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Final

from nemesis.reference.protocol.record_batch import RecordBatchHeader

ENTRY_SIZE: Final = 8
MAX_RELATIVE_OFFSET: Final = 2**31 - 1
_ENTRY: Final = Struct(">ii")
_RECENT_BATCHES: Final = 128
"""Of so many batches at least the position is kept, of twice as many at most."""


class OffsetIndex:
    """The index of one segment."""

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._offsets = array("q")
        self._positions = array("q")
        self.next_entry_after = interval_bytes
        """The first batch that starts behind this position gets an entry."""
        self._recent_offsets = array("q")
        self._recent_positions = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last_position(self) -> int:
        """The position of the last entry; 0 when there is none."""
        return self._positions[-1] if self._positions else 0

    def add(self, last_offset: int, position: int) -> None:
        """Add an entry for a batch that starts at the position, behind ``next_entry_after``."""
        self._offsets.append(last_offset)
        self._positions.append(position)
        self.next_entry_after = position + self._interval_bytes

    def note_recent(self, headers: Sequence[RecordBatchHeader], start: int) -> None:
        """Take note of the batches written last, all of them; their positions count from ``start``."""
        if len(headers) > _RECENT_BATCHES:
            self._forget_recent(len(self._recent_offsets))
            headers = headers[-_RECENT_BATCHES:]
        for header in headers:
            self._recent_offsets.append(header.last_offset)
            self._recent_positions.append(start + header.position)
        if len(self._recent_offsets) > 2 * _RECENT_BATCHES:
            self._forget_recent(len(self._recent_offsets) - _RECENT_BATCHES)

    def _forget_recent(self, count: int) -> None:
        del self._recent_offsets[:count], self._recent_positions[:count]

    def recent_position(self, offset: int) -> int | None:
        """Return the position of the batch that holds the offset if it is among the last ones, else None."""
        index = bisect_left(self._recent_offsets, offset)
        # Of the oldest one kept it is not known where it begins.
        return self._recent_positions[index] if 0 < index < len(self._recent_offsets) else None

    def floor_of_offset(self, offset: int) -> int:
        """Return the position of a batch at or before the one that holds the offset."""
        index = bisect_right(self._offsets, offset)
        return self._positions[index - 1] if index > 0 else 0

    def floor_of_position(self, position: int) -> int:
        """Return the largest position of a known batch that is not behind the one given."""
        index = bisect_right(self._positions, position)
        return self._positions[index - 1] if index > 0 else 0

    def truncate(self, size: int) -> None:
        """Forget the batches from this position on."""
        index = bisect_left(self._positions, size)
        del self._offsets[index:], self._positions[index:]
        recent = bisect_left(self._recent_positions, size)
        del self._recent_offsets[recent:], self._recent_positions[recent:]
        self.next_entry_after = self.last_position + self._interval_bytes

    def to_bytes(self) -> bytes:
        base = self._base_offset
        pairs = zip(self._offsets, self._positions, strict=True)
        return b"".join(_ENTRY.pack(offset - base, position) for offset, position in pairs)

    @classmethod
    def from_bytes(
        cls, data: bytes, *, base_offset: int, interval_bytes: int, segment_size: int
    ) -> OffsetIndex | None:
        """Return the index; None when the bytes cannot be the index of such a segment."""
        if len(data) % ENTRY_SIZE != 0:
            return None
        index = cls(base_offset, interval_bytes)
        previous_offset, previous_position = -1, -1
        for relative, position in _ENTRY.iter_unpack(data):
            if relative <= previous_offset or position <= previous_position:
                return None
            index._offsets.append(base_offset + relative)
            index._positions.append(position)
            previous_offset, previous_position = relative, position
        if previous_position >= segment_size:
            return None
        index.next_entry_after = index.last_position + interval_bytes
        return index
