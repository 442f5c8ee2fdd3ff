"""Spans of time: a table of (start, stop) rows, sorted, none touching the next.

The union of two such tables is associative and does not ask for an order, so spans of stretches of a history can be
joined as they come.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nemesis.checkers.framework.segment import Numbers

Spans = Numbers
"""An array of shape (n, 2)."""

NONE: Spans = np.zeros((0, 2), dtype=np.int64)


def spans(pairs: Iterable[tuple[int, int]]) -> Spans:
    """Return the union of these spans; those that end before they start are left out."""
    table = np.array([pair for pair in pairs if pair[0] <= pair[1]], dtype=np.int64)
    return union(table.reshape(-1, 2))


def union(table: Spans, within: int = 0) -> Spans:
    """Return the union of spans in any order; spans that are at most ``within`` apart become one."""
    if not len(table):
        return NONE
    ordered = table[np.argsort(table[:, 0], kind="stable")]
    reached = np.maximum.accumulate(ordered[:, 1])
    begins = np.append(True, ordered[1:, 0] > reached[:-1] + within)
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(ordered)) - 1
    return np.stack([ordered[firsts, 0], reached[lasts]], axis=1)


def complement(table: Spans, start: int, stop: int) -> Spans:
    """Return what is left of ``start`` to ``stop`` between these spans."""
    if stop <= start:
        return NONE
    inner = table[(table[:, 1] >= start) & (table[:, 0] <= stop)]
    starts = np.append(start, inner[:, 1])
    stops = np.append(inner[:, 0], stop)
    return np.stack([starts, stops], axis=1)[starts < stops]


def intersection(a: Spans, b: Spans) -> Spans:
    """Return what lies in both; moments are left out."""
    if not len(a) or not len(b):
        return NONE
    start = int(min(a[0, 0], b[0, 0]))
    stop = int(max(a[-1, 1], b[-1, 1]))
    outside = np.concatenate([complement(a, start, stop), complement(b, start, stop)])
    return complement(union(outside), start, stop)
