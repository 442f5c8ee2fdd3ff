"""Does a value stand at offsets of two cells? Only where the values of both overlap.

Each cell has told the smallest and the largest of its values in each zone. Values are given out one after the other, so
those of two cells overlap where one ends and the next begins. Of these ``Overlap``s the records are fetched, from the
row groups that have such values at all, and compared.

Limit: values that lie at random, far from their neighbours in the log, overlap everywhere. Then the records of one zone
after the other are fetched, each from all row groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.log.cells import CellReport, Piece
from nemesis.checkers.log.number_range import Span


class Overlap(NamedTuple):
    """Values from ``low`` to ``high``, both included, that several cells may have."""

    low: int
    high: int


def overlaps(reports: Iterable[CellReport]) -> list[Overlap]:
    """Where values of several cells may be the same."""
    overlapping: list[Overlap] = []
    by_zone: dict[int, list[Span]] = {}
    for report in reports:
        for zone, extent in report.zones.items():
            by_zone.setdefault(zone, []).append(extent)
    for extents in by_zone.values():
        reached: int | None = None
        for low, high in sorted(extents):
            if reached is not None and low <= reached:
                overlapping.append(Overlap(low, min(high, reached)))
            reached = high if reached is None else max(reached, high)
    return _merged(sorted(overlapping))


def _merged(overlaps: list[Overlap]) -> list[Overlap]:
    merged: list[Overlap] = []
    for overlap in overlaps:
        if merged and overlap.low <= merged[-1].high:
            merged[-1] = Overlap(merged[-1].low, max(merged[-1].high, overlap.high))
        else:
            merged.append(overlap)
    return merged


def repeated(pieces: Sequence[Piece], overlap: Overlap) -> Numbers:
    """Return (offset, value) of the values of an overlap that stand at several offsets."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    pairs += [piece.read().between(*overlap) for piece in pieces]
    known = np.unique(np.concatenate(pairs), axis=0)
    _, inverse, counts = np.unique(known[:, 1], return_inverse=True, return_counts=True)
    twice: Numbers = known[counts[inverse] > 1]
    return twice
