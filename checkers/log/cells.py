"""Which value stands at which offset: looked at cell by cell, in arrays as long as a cell.

The idea: offsets are dense, so what is known of four million of them is an array of values and one of marks
(acknowledged, read, read at the end), however the records came: each acknowledged send and each record read is put in
its place, in any order. It is a suspect if another value stands there already, or if the final reads should have
returned it and did not. Otherwise each offset has one value, and it is left to be seen that no value stands at two:
inside a cell by sorting, between cells by the ranges of their values (``zones``).

Suspects are offsets and values, none or a few if all is well; what is wrong with them is told by the walk, which is
given all that is known of them (``suspects``). A value that is no suspect stands at one offset, is read there at the
end if it must be, and its send has not failed; an offset that is none has one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from checkers.log import kernels
from checkers.log.rows import UNSET, Lists, Source, are_plain
from checkers.log.trimmed import is_in
from checkers.segment import Mask, Numbers, Segment

ACKNOWLEDGED, READ, FINAL = 1, 2, 4


class Extent(NamedTuple):
    """The smallest and the largest value of a zone."""

    low: int
    high: int


@dataclass(slots=True)
class CellReport:
    committed: int = 0
    """Offsets that were acknowledged or read."""
    read: int = 0
    """Offsets that were read."""
    suspects: Numbers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """(offset, value)."""
    zones: dict[int, Extent] = field(default_factory=dict)
    """The values, by zone."""
    read_values: list[Extent | None] = field(default_factory=list)
    """The values that were read, of each row group that was looked at."""
    irregular: bool = False
    """Whether some poll has not as many values as offsets."""


class Cell:
    """The offsets from ``low`` to ``high``, both included."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high
        self._values = np.zeros(high - low + 1, dtype=np.int64)
        self._marks = np.zeros(high - low + 1, dtype=np.uint8)
        self._suspects: list[Numbers] = []

    def put(self, chosen: Mask, offsets: Numbers, values: Numbers, mark: int) -> None:
        """Put the chosen values in their places; offsets outside of the cell are left out."""
        others = np.empty(len(offsets), dtype=np.int64)
        count = kernels.put(
            chosen, offsets, values, mark, self._low, self._values, self._marks, others
        )
        self._differ(offsets[others[:count]], values[others[:count]])

    def put_polls(
        self, positions: Numbers, lengths: Numbers, marks: Numbers, values: Numbers
    ) -> None:
        """Put what polls returned, each all offsets from its position on."""
        others = np.empty(len(values), dtype=np.int64)
        count = kernels.put_lists(
            positions, lengths, marks, values, self._low, self._values, self._marks, others
        )
        if count:
            offsets = np.repeat(positions - (np.cumsum(lengths) - lengths), lengths)
            offsets += np.arange(len(values))
            self._differ(offsets[others[:count]], values[others[:count]])

    def _differ(self, offsets: Numbers, values: Numbers) -> None:
        """Other values than these stand at these offsets."""
        if len(offsets):
            self.suspect(offsets - self._low)
            self._suspects.append(np.column_stack((offsets, values)))

    def suspect(self, places: Numbers) -> None:
        """What stands in these places."""
        self._suspects.append(np.column_stack((places + self._low, self._values[places])))

    def report(self, failed: Numbers, floor: int, zone_bits: int) -> CellReport:
        """What there is to tell once all is in place."""
        there = self._marks != 0
        unread = there & (self._marks & FINAL == 0)
        unread[: max(0, floor - self._low)] = False
        self.suspect(np.flatnonzero(unread))
        values = np.sort(self._values if there.all() else self._values[there])
        doubtful = np.concatenate(
            (values[1:][values[1:] == values[:-1]], failed[is_in(failed, values)])
        )
        if len(doubtful):
            self.suspect(np.flatnonzero(there & is_in(self._values, np.unique(doubtful))))
        return CellReport(
            committed=int(np.count_nonzero(there)),
            read=int(np.count_nonzero(self._marks & READ)),
            suspects=np.unique(
                np.concatenate([np.zeros((0, 2), np.int64), *self._suspects]), axis=0
            ),
            zones=zones_of(values, zone_bits),
        )


class Piece(NamedTuple):
    """A row group that tells of a cell."""

    source: Source
    runs_on: bool
    """Whether each poll in it returned all offsets from its position to its end, so that they need not be read."""
    lengths: bytes
    """The fingerprint of how many they were."""
    plain: bool | None
    """As ``Survey.plain``: three columns are all that need be read."""

    def read(self) -> tuple[Segment, Mask, Mask]:
        """The partition's rows, which of them acknowledge a send, and which are final readers'."""
        if self.plain is None:
            rows = self.source.read("process", "value", "acks", "offset", "values")
            return rows.segment, rows.are_acknowledged, rows.are_final
        segment = Segment.of(self.source.group)
        segment.columns.fetch(("value", "offset", "values"))
        return segment, are_plain(segment), np.full(len(segment), self.plain)


def look(
    pieces: Sequence[Piece],
    low: int,
    high: int,
    *,
    failed: Numbers,
    floor: int,
    zone_bits: int,
) -> CellReport:
    """Look at the offsets from ``low`` to ``high``, of which these row groups tell.

    ``failed``: values whose sends certainly failed. From ``floor`` on the final reads must have all that was known.
    """
    cell = Cell(low, high)
    extents: list[Extent | None] = []
    for piece in pieces:
        segment, done, final = piece.read()
        values = Lists.of(segment, "values")
        if not values.is_whole or values.fingerprint != piece.lengths:
            return CellReport(irregular=True)
        sent, value = (segment.numbers(name, UNSET) for name in ("offset", "value"))
        cell.put(done, sent, value, ACKNOWLEDGED)
        _put_records(cell, piece, segment, final, values)
        read = values.flat
        extents.append(Extent(int(read.min()), int(read.max())) if len(read) else None)
    report = cell.report(failed, floor, zone_bits)
    report.read_values = extents
    return report


def _put_records(cell: Cell, piece: Piece, segment: Segment, final: Mask, values: Lists) -> None:
    polls = np.flatnonzero(values.lengths)
    lengths, marks = values.lengths[polls], np.where(final[polls], READ | FINAL, READ)
    if piece.runs_on:
        positions = segment.numbers("offset", UNSET)[polls]
        cell.put_polls(positions, lengths, marks, values.flat)
        return
    offsets, marks = Lists.of(segment, "offsets"), np.repeat(marks, lengths)
    for mark in (READ, READ | FINAL):
        cell.put(marks == mark, offsets.flat, values.flat, mark)


def zones_of(values: Numbers, bits: int) -> dict[int, Extent]:
    """The zones of sorted values, each as wide as these bits say."""
    zones: dict[int, Extent] = {}
    start = 0
    while start < len(values):
        zone = int(values[start]) >> bits
        end = int(np.searchsorted(values, (zone + 1 << bits) - 1, side="right"))
        zones[zone] = Extent(int(values[start]), int(values[end - 1]))
        start = end
    return zones
