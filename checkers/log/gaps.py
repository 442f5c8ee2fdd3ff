"""Offsets that readers are not given, because they hold no record or one of an aborted transaction.

A marker takes an offset, and no reader is given it. Readers of committed records are not given those of an aborted
transaction either. They lie from the transaction's first offset to its marker. So the offsets between two records that
a reader was given are explained if each of them is a marker's, or lies in an aborted transaction. Nothing else explains
them here; what compaction may have taken is ``compaction``.

Markers are known from the traces of brokers, and from the files of stopped brokers. Both name the first offset of the
transaction in this log, or −1 if none of its records is there.

The idea: the explained offsets are intervals, merged and sorted. Whether a gap is explained takes one binary search,
for any number of gaps at once.

Limits: in the range of an aborted transaction lie records of other producers. That a reader skips one of these is left
to ``lost-write`` and ``unseen``. A marker that was truncated counts, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.history.events import ABORT, Kind

MARKER_KINDS = frozenset({Kind.MARKER_APPENDED, Kind.STORED_MARKER})
MARKER_COLUMNS = ("offset", "first_offset", "producer_id", "outcome")

_EMPTY = np.zeros(0, dtype=np.int64)


def markers_of(segment: Segment) -> Numbers:
    """Return a row for each different marker: offset, first offset of the transaction, producer id, 1 if it aborts."""
    appended = segment.where(segment.is_kind(*MARKER_KINDS))
    aborts = appended.is_word("outcome", {ABORT}).astype(np.int64)
    columns = [appended.numbers(name) for name in ("offset", "first_offset", "producer_id")]
    return joined_markers([np.column_stack((*columns, aborts))])


def joined_markers(parts: Iterable[Numbers]) -> Numbers:
    """Return the different rows of several ``markers_of``."""
    return np.unique(np.concatenate([np.zeros((0, 4), dtype=np.int64), *parts]), axis=0)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The explained offsets of one partition."""

    starts: Numbers = field(default_factory=lambda: _EMPTY)
    """Of intervals that are apart, ascending."""
    ends: Numbers = field(default_factory=lambda: _EMPTY)
    """Exclusive."""
    aborted: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    """By producer id, the first offsets of its aborted transactions, ascending, and their markers."""

    @classmethod
    def of(cls, markers: Numbers) -> Gaps:
        """``markers`` as ``markers_of`` returns them."""
        offsets, firsts, _, aborts = markers.T
        has_data = (aborts == 1) & (firsts >= 0)
        starts = np.concatenate((offsets, firsts[has_data]))
        ends = np.concatenate((offsets + 1, offsets[has_data]))
        aborted: dict[int, tuple[list[int], list[int]]] = {}
        for offset, first, producer in np.unique(markers[has_data, :3], axis=0).tolist():
            ranges = aborted.setdefault(producer, ([], []))
            ranges[0].append(first)
            ranges[1].append(offset)
        return cls(*_merged(starts, ends), aborted)

    def explain(self, starts: Numbers, ends: Numbers) -> Mask:
        """Which of these gaps are explained: the offsets from each start up to its end, exclusive."""
        if not len(self.starts):
            return np.zeros(len(starts), dtype=np.bool_)
        index = np.searchsorted(self.starts, starts, side="right") - 1
        is_inside: Mask = (index >= 0) & (starts < ends) & (self.ends[index] >= ends)
        return is_inside

    def explains(self, start: int, end: int) -> bool:
        """Whether all offsets from ``start`` up to ``end``, exclusive, are explained."""
        return bool(self.explain(np.array([start]), np.array([end]))[0])

    def first_unexplained(self, start: int, end: int) -> int:
        """Return the first offset of a gap that is not explained; ``end`` if all are."""
        offset = start
        while offset < end:
            index = int(np.searchsorted(self.starts, offset, side="right")) - 1
            if index < 0 or self.ends[index] <= offset:
                return offset
            offset = int(self.ends[index])
        return end

    def unexplained(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of a gap that are not explained: from an offset up to another one, exclusive."""
        offset = self.first_unexplained(start, end)
        while offset < end:
            index = int(np.searchsorted(self.starts, offset, side="right"))
            behind = min(end, int(self.starts[index])) if index < len(self.starts) else end
            yield offset, behind
            offset = self.first_unexplained(behind, end)

    def is_aborted(self, producer_id: int | None, offset: int) -> bool:
        """Whether the record of the producer at the offset is part of an aborted transaction."""
        if producer_id is None or producer_id not in self.aborted:
            return False
        firsts, markers = self.aborted[producer_id]
        index = bisect_right(firsts, offset) - 1
        return index >= 0 and offset < markers[index]


def gaps_in(positions: Numbers, lengths: Numbers, offsets: Numbers) -> tuple[Numbers, bool]:
    """Return the gaps in lists of offsets, a row (start, end) for each, and whether all lists ascend.

    ``offsets`` holds the lists one after the other, each of this length; each is expected to begin at its position.
    """
    full = np.flatnonzero(lengths)
    expected = np.empty(len(offsets), dtype=np.int64)
    expected[1:] = offsets[:-1] + 1
    begins = (np.cumsum(lengths) - lengths)[full]
    expected[begins] = positions[full]
    is_gap = offsets > expected
    return np.column_stack((expected[is_gap], offsets[is_gap])), bool((offsets >= expected).all())


def _merged(starts: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    if not len(starts):
        return _EMPTY, _EMPTY
    permutation = np.argsort(starts, kind="stable")
    starts, reached = starts[permutation], np.maximum.accumulate(ends[permutation])
    first = np.concatenate(([True], starts[1:] > reached[:-1]))
    last = np.concatenate((first[1:], [True]))
    return starts[first], reached[last]
