"""Numbers to SVG paths: whole coordinates in a box of ``WIDTH`` by ``HEIGHT``, relative where that is shorter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.reports.charts.scale import Scale
from nemesis.reports.sampling import Floats

WIDTH: Final = 100_000
HEIGHT: Final = 1_000

Interval = tuple[float, float]
"""From when to when, in seconds."""


def steps(x: Floats, y: Floats, scale: Scale, duration_s: float, spans: Sequence[Interval]) -> str:
    """Return a line that keeps each value until the next one; it is drawn in the spans alone, each for itself."""
    columns, rows = horizontal(x, duration_s), vertical(y, scale)
    parts = []
    for start_s, stop_s in spans:
        first, last = np.searchsorted(x, start_s, "left"), np.searchsorted(x, stop_s, "right")
        if first < last:
            end = int(horizontal(np.array([stop_s]), duration_s)[0])
            parts.append(_steps(columns[first:last], rows[first:last], end))
    return "".join(parts)


def _steps(columns: Numbers, rows: Numbers, end: int) -> str:
    moves = [f"M{columns[0]} {rows[0]}"]
    across = np.diff(np.append(columns, end)).tolist()
    down = [0, *np.diff(rows).tolist()]
    waiting = 0
    for right, fall in zip(across, down, strict=True):
        if fall:
            moves.append(f"h{waiting}v{fall}" if waiting else f"v{fall}")
            waiting = 0
        waiting += right
    # A line without length would not be visible.
    return "".join([*moves, f"h{max(waiting, 1)}"])


def line(x: Floats, y: Floats, scale: Scale, duration_s: float, gap_s: float) -> str:
    """Return a line from point to point; it is broken where points are farther apart than ``gap_s``."""
    columns, rows = horizontal(x, duration_s).tolist(), vertical(y, scale).tolist()
    breaks = [True, *(np.diff(x) > gap_s).tolist()]
    # A point alone is a dot: a stroke of almost no length with round ends.
    return "".join(
        f"M{column} {row}h1" if is_break else f"L{column} {row}"
        for column, row, is_break in zip(columns, rows, breaks, strict=True)
    )


def dots(x: Floats, y: Floats, scale: Scale, duration_s: float) -> str:
    """Return a dot for each point."""
    points = zip(horizontal(x, duration_s).tolist(), vertical(y, scale).tolist(), strict=True)
    return "".join(f"M{column} {row}h1" for column, row in points)


def columns(edges: Floats, low: Floats, high: Floats, scale: Scale, duration_s: float) -> str:
    """Return a bar for each bin between two edges, from ``low`` to ``high``; empty ones are left out."""
    left, bottoms, tops = (
        horizontal(edges, duration_s).tolist(),
        vertical(low, scale).tolist(),
        vertical(high, scale).tolist(),
    )
    bins = zip(left, left[1:], bottoms, tops, (high > low).tolist(), strict=False)
    return "".join(
        box(start, stop, min(top, bottom - 1), bottom)
        for start, stop, bottom, top, is_visible in bins
        if is_visible
    )


def strokes(intervals: Iterable[Interval], height: int, duration_s: float) -> str:
    """Return a horizontal stroke for each interval at a height of the box."""
    return "".join(
        f"M{start} {height}h{max(1, stop - start)}"
        for start, stop in (_ends(interval, duration_s) for interval in intervals)
    )


def box(left: int, right: int, top: int, bottom: int) -> str:
    """Return a rectangle; it is never too narrow to be drawn."""
    width = max(1, right - left)
    return f"M{left} {bottom}V{top}h{width}V{bottom}z"


def horizontal(seconds: Floats, duration_s: float) -> Numbers:
    """Return the columns of the box where these times lie."""
    share = np.clip(np.asarray(seconds) / max(duration_s, 1e-9), 0.0, 1.0)
    return np.asarray(np.rint(share * WIDTH), dtype=np.int64)


def vertical(values: Floats, scale: Scale) -> Numbers:
    """Return the rows of the box where these values lie; row 0 is at the top."""
    return np.asarray(np.rint((1.0 - scale.shares(values)) * HEIGHT), dtype=np.int64)


def joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals in order, those that touch as one."""
    merged: list[Interval] = []
    for start, stop in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _ends(interval: Interval, duration_s: float) -> tuple[int, int]:
    start, stop = horizontal(np.array(interval), duration_s).tolist()
    return start, stop
