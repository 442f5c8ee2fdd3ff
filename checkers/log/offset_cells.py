"""In which cells offsets lie: a log is looked at in stretches of a million offsets (``cells``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.log.number_range import Span, wider
from nemesis.checkers.log.records import Records

CELL_BITS = 20


def cells_of(records: Records, acknowledged: Span | None) -> dict[int, Span]:
    """The cells in which something stands, with the smallest and the largest offset there.

    ``acknowledged`` is the span of the offsets of acknowledged sends, if there are any.
    """
    cells: dict[int, Span] = {}
    for cell, least, most in (*_cells_sent(records, acknowledged), *_cells_read(records)):
        cells[cell] = wider(cells.get(cell), (least, most))
    return cells


def _cells_sent(records: Records, span: Span | None) -> Iterable[tuple[int, int, int]]:
    if span is None:
        return ()
    return _in_one_cell(span) or _by_cell(records.offsets[records.sent])


def _cells_read(records: Records) -> Iterator[tuple[int, int, int]]:
    if records.read_offsets is not None:
        yield from _by_cell(records.read_offsets)
        return
    firsts, lasts = records.positions, records.positions + records.lengths - 1
    across = firsts >> CELL_BITS != lasts >> CELL_BITS
    if not across.all():
        yield from _by_cell(np.column_stack((firsts[~across], lasts[~across])).ravel())
    for first, last in zip(firsts[across].tolist(), lasts[across].tolist(), strict=True):
        for cell in range(first >> CELL_BITS, (last >> CELL_BITS) + 1):
            yield cell, max(first, cell << CELL_BITS), min(last, (cell + 1 << CELL_BITS) - 1)


def _in_one_cell(span: Span) -> list[tuple[int, int, int]]:
    cell = span[0] >> CELL_BITS
    return [(cell, *span)] if span[1] >> CELL_BITS == cell else []


def _by_cell(offsets: Numbers) -> Iterator[tuple[int, int, int]]:
    """Yield the cells of stretches of offsets, with the smallest and the largest there."""
    cells = offsets >> CELL_BITS
    starts = np.concatenate(([0], np.flatnonzero(np.diff(cells)) + 1))
    low, high = np.minimum.reduceat(offsets, starts), np.maximum.reduceat(offsets, starts)
    yield from zip(cells[starts].tolist(), low.tolist(), high.tolist(), strict=True)
