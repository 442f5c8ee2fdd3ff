"""The model of one replica's log: which leader epoch wrote each offset, as a few spans.

Two records at the same offset are the same record exactly when the same leader epoch wrote them (an epoch has one
leader, and a leader writes each offset once). So comparing two logs means comparing spans, not records, and a log
of a million records with five elections is five numbers.

Offsets that no event accounts for (a broker was killed between an append and its event) are ``UNKNOWN`` and agree
with everything.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

UNKNOWN = -1


@dataclass(slots=True)
class ReplicaLog:
    """Spans of leader epochs, from offset 0 up to ``end`` (exclusive)."""

    starts: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    """``epochs[i]`` wrote the offsets from ``starts[i]`` up to the next start."""
    rows: list[int | None] = field(default_factory=list)
    """The event that tells of the beginning of the span."""
    end: int = 0
    start: int = 0
    """What is below is not read any more, and may be anything."""

    def copy(self) -> ReplicaLog:
        return ReplicaLog(
            self.starts.copy(), self.epochs.copy(), self.rows.copy(), self.end, self.start
        )

    def append(self, start: int, end: int, leader_epoch: int, row: int | None = None) -> None:
        """Records from ``start`` up to ``end`` were appended; whatever was there is replaced, a gap is unknown."""
        self.resize(start)
        if end > start:
            self._extend(end, leader_epoch, row)

    def resize(self, end: int) -> None:
        """The log now ends here: cut, or grown by records that nobody told of."""
        if end > self.end:
            self._extend(end, UNKNOWN, None)
        while self.starts and self.starts[-1] >= end:
            self.starts.pop()
            self.epochs.pop()
            self.rows.pop()
        self.end = end

    def _extend(self, end: int, leader_epoch: int, row: int | None) -> None:
        if not self.epochs or self.epochs[-1] != leader_epoch:
            self.starts.append(self.end)
            self.epochs.append(leader_epoch)
            self.rows.append(row)
        self.end = end

    def epoch_at(self, offset: int) -> int:
        """The leader epoch that wrote this offset; ``UNKNOWN`` also outside the log."""
        index = bisect_right(self.starts, offset) - 1
        return self.epochs[index] if index >= 0 and offset < self.end else UNKNOWN

    def row_at(self, offset: int) -> int | None:
        """The row of the append that wrote this offset, if the span begins with the offset: others are not kept."""
        index = bisect_right(self.starts, offset) - 1
        return self.rows[index] if index >= 0 and self.starts[index] == offset < self.end else None

    def first_difference(self, other: ReplicaLog, start: int, end: int) -> int | None:
        """The lowest offset in ``start`` up to ``end`` that both know and that different epochs wrote."""
        edges = {start, *self.starts, *other.starts, self.end, other.end}
        for offset in sorted(edge for edge in edges if start <= edge < end):
            epoch, other_epoch = self.epoch_at(offset), other.epoch_at(offset)
            if UNKNOWN not in (epoch, other_epoch) and epoch != other_epoch:
                return offset
        return None
