"""A sparse map from times to offsets of one segment, in Kafka's ``.timeindex`` format.

An entry (timestamp, offset) says that no record before the entry has a later timestamp, and that the batch which
ends at the offset has it. Entries are added together with those of the offset index, if the largest timestamp has
grown since, and once more when the segment is closed or rolled. So timestamps and offsets both grow.

On disk: 12 bytes per entry, big-endian: timestamp int64 (ms), offset relative to the segment's base int32.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct
from typing import Final, NamedTuple

ENTRY_SIZE: Final = 12
_ENTRY: Final = Struct(">qi")


class TimestampOffset(NamedTuple):
    """A time in ms, and the last offset of the batch that has it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The index of one segment."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> TimestampOffset:
        """The last entry; time −1 at the base offset when there is none."""
        if not self._offsets:
            return TimestampOffset(-1, self._base_offset)
        return TimestampOffset(self._timestamps[-1], self._offsets[-1])

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless the last one has that time already. Call in order of offset."""
        if not self._offsets:
            is_later = timestamp > -1
        else:
            is_later = timestamp > self._timestamps[-1] and offset > self._offsets[-1]
        if is_later:
            self._timestamps.append(timestamp)
            self._offsets.append(offset)

    def lookup(self, timestamp: int) -> int:
        """Return an offset before which no record has that time or a later one."""
        index = bisect_left(self._timestamps, timestamp)
        return self._offsets[index - 1] if index > 0 else self._base_offset

    def truncate_to(self, offset: int) -> None:
        """Forget the entries from this offset on."""
        index = bisect_left(self._offsets, offset)
        del self._timestamps[index:], self._offsets[index:]

    def to_bytes(self) -> bytes:
        base = self._base_offset
        pairs = zip(self._timestamps, self._offsets, strict=True)
        return b"".join(_ENTRY.pack(timestamp, offset - base) for timestamp, offset in pairs)

    @classmethod
    def from_bytes(cls, data: bytes, *, base_offset: int, next_offset: int) -> TimeIndex | None:
        """Return the index; None when the bytes cannot be that of a segment which ends before ``next_offset``."""
        if len(data) % ENTRY_SIZE != 0:
            return None
        index = cls(base_offset)
        previous = (-1, -1)
        for timestamp, relative in _ENTRY.iter_unpack(data):
            if timestamp <= previous[0] or relative <= previous[1]:
                return None
            previous = (timestamp, relative)
            index._timestamps.append(timestamp)
            index._offsets.append(base_offset + relative)
        if index._offsets and index._offsets[-1] >= next_offset:
            return None
        return index
