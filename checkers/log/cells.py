"""Which value stands at which offset: looked at cell by cell, in arrays as long as a cell.

The idea: offsets are nearly dense, so what is known of a million of them is an array of values and one of marks
(acknowledged, read, read at the end), however the records came: each acknowledged send and each record read is put in
its place, in any order. It is a suspect if another value stands there already, or if the final reads should have
returned it and did not. Otherwise each offset has one value, and it is left to be seen that no value stands at two:
inside a cell by marking each value that it has, between cells by the ranges of their values (``value_ranges``).
 Suspects are offsets and values, none or a few if all is well; what is wrong with them is told by the walk, which is
given all that is known of them (``suspect_operations``). A value that is no suspect stands at one offset, is read there
at the end if it must be, and its send has not failed; an offset that is none has one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.checkers.log import kernels
from nemesis.checkers.log.number_range import Span
from nemesis.checkers.log.partition_rows import UNSET, Lists, Source, are_plain
from nemesis.checkers.log.records import Records
from nemesis.checkers.log.trimmed import is_in

ACKNOWLEDGED, READ, FINAL = 1, 2, 4
SPARSE = 8
"""Values of a cell that lie further apart than so many times their number are sorted."""
MAX_ZONES = 4096


@dataclass(slots=True)
class CellReport:
    committed: int = 0
    """Offsets that were acknowledged or read."""
    read: int = 0
    """Offsets that were read."""
    suspects: Numbers = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """(offset, value)."""
    zones: dict[int, Span] = field(default_factory=dict)
    """The values, by zone."""


class Cell:
    """The offsets from ``low`` to ``high``, both included."""

    def __init__(self, low: int, high: int) -> None:
        self._low = low
        self._values = np.zeros(high - low + 1, dtype=np.int64)
        self._marks = np.zeros(high - low + 1, dtype=np.uint8)
        self._suspects: list[Numbers] = []

    def put(self, records: Records) -> None:
        """Put what is known in its places; offsets outside of the cell are left out."""
        self._put(records.sent, records.offsets, records.values, ACKNOWLEDGED)
        if records.read_offsets is None:
            self._put_polls(records)
            return
        marks = np.repeat(records.final, records.lengths)
        self._put(~marks, records.read_offsets, records.read, READ)
        self._put(marks, records.read_offsets, records.read, READ | FINAL)

    def _put(self, chosen: Mask, offsets: Numbers, values: Numbers, mark: int) -> None:
        others = np.empty(len(offsets), dtype=np.int64)
        count = kernels.put(
            chosen, offsets, values, mark, self._low, self._values, self._marks, others
        )
        self._differ(offsets[others[:count]], values[others[:count]])

    def _put_polls(self, records: Records) -> None:
        """Put what polls returned, each all offsets from its position on."""
        others = np.empty(len(records.read), dtype=np.int64)
        marks = np.where(records.final, READ | FINAL, READ).astype(np.uint8)
        count = kernels.put_lists(
            records.positions,
            records.lengths,
            marks,
            records.read,
            self._low,
            self._values,
            self._marks,
            others,
        )
        if count:
            differing = others[:count]
            self._differ(records.where_read()[differing], records.read[differing])

    def _differ(self, offsets: Numbers, values: Numbers) -> None:
        """Other values than these stand at these offsets."""
        if len(offsets):
            self._suspect(offsets - self._low)
            self._suspects.append(np.column_stack((offsets, values)))

    def _suspect(self, indices: Numbers) -> None:
        """What stands in these places."""
        self._suspects.append(np.column_stack((indices + self._low, self._values[indices])))

    def unread(self, floor: int) -> Numbers:
        """The places from the offset ``floor`` on of what is known and the final reads did not return."""
        unread = (self._marks != 0) & (self._marks < FINAL)
        unread[: max(0, floor - self._low)] = False
        return np.flatnonzero(unread)

    def report(self, failed: Numbers, floor: int, zone_bits: int) -> CellReport:
        """What there is to tell once all is in place."""
        self._suspect(self.unread(floor))
        zones = self._spread(failed, zone_bits)
        if zones is None:
            zones = self._sorted(failed, zone_bits)
        return CellReport(
            committed=int(np.count_nonzero(self._marks)),
            read=int(np.count_nonzero(self._marks & READ)),
            suspects=np.unique(
                np.concatenate([np.zeros((0, 2), np.int64), *self._suspects]), axis=0
            ),
            zones=zones,
        )

    def _spread(self, failed: Numbers, zone_bits: int) -> dict[int, Span] | None:
        """The zones; None if values lie far apart, or there is something wrong with them."""
        least, most = kernels.bounds(self._values, self._marks)
        if least > most:
            return {}
        first, count = least >> zone_bits, (most >> zone_bits) - (least >> zone_bits) + 1
        if most - least >= SPARSE * len(self._values) or count > MAX_ZONES:
            return None
        is_taken = np.zeros(most - least + 1, dtype=np.uint8)
        lows, highs = np.full(count, most), np.full(count, least)
        if not kernels.spread(
            self._values, self._marks, least, is_taken, zone_bits, first, lows, highs
        ):
            return None
        near = failed[(failed >= least) & (failed <= most)]
        if is_taken[near - least].any():
            return None
        spans = zip(lows.tolist(), highs.tolist(), strict=True)
        return {
            zone: span for zone, span in enumerate(spans, first) if span[0] >> zone_bits == zone
        }

    def _sorted(self, failed: Numbers, zone_bits: int) -> dict[int, Span]:
        """The zones, having told what is wrong with values."""
        there = self._marks != 0
        values = np.sort(self._values[there])
        doubtful = np.concatenate(
            (values[1:][values[1:] == values[:-1]], failed[is_in(failed, values)])
        )
        if len(doubtful):
            self._suspect(np.flatnonzero(there & is_in(self._values, np.unique(doubtful))))
        return zones_of(values, zone_bits)


class Piece(NamedTuple):
    """A row group that tells of a cell, and of which a survey has told."""

    source: Source
    runs_on: bool
    """Whether each poll in it returned all offsets from its position to its end, so that they need not be read."""
    plain: bool | None
    """As ``Survey.plain``: three columns are all that need be read."""

    def read(self) -> Records:
        if self.plain is None:
            rows = self.source.read("process", "value", "acks", "offset", "values")
            segment, done, final = rows.segment, rows.are_acknowledged, rows.are_final
        else:
            segment = Segment.of(self.source.group)
            segment.columns.fetch(("value", "offset", "values"))
            done, final = are_plain(segment), np.full(len(segment), self.plain)
        values = Lists.of(segment, "values")
        sends = done, segment.numbers("offset", UNSET), segment.numbers("value", UNSET)
        read_offsets = None if self.runs_on else Lists.of(segment, "offsets").flat
        return Records.of(sends, values.lengths, final, values.flat, read_offsets)


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
    for piece in pieces:
        cell.put(piece.read())
    return cell.report(failed, floor, zone_bits)


def zones_of(values: Numbers, bits: int) -> dict[int, Span]:
    """The zones of sorted values, each as wide as these bits say."""
    zones: dict[int, Span] = {}
    start = 0
    while start < len(values):
        zone = int(values[start]) >> bits
        end = int(np.searchsorted(values, (zone + 1 << bits) - 1, side="right"))
        zones[zone] = int(values[start]), int(values[end - 1])
        start = end
    return zones
