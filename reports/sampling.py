"""Fewer points that draw the same line.

A plot is about a thousand pixels wide. Of each of equally long stretches of time the first, the lowest, the
highest and the last point are kept: at that width the line looks the same, and no fall or peak is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nemesis.checkers.framework.segment import Numbers

Floats = np.ndarray[Any, np.dtype[np.float64]]


def thinned(x: Floats, y: Numbers, most: int) -> Numbers:
    """Return the positions to draw, in order: all of them, or at most about ``most``. ``x`` is ascending."""
    if len(x) <= most:
        return np.arange(len(x), dtype=np.int64)
    stretches = max(1, most // 4)
    span = max(float(x[-1] - x[0]), 1e-12)
    stretch = np.minimum(((x - x[0]) / span * stretches).astype(np.int64), stretches - 1)
    starts, stops = bounds(stretch)
    by_value = np.lexsort((y, stretch))
    return np.unique(np.concatenate((starts, stops - 1, by_value[starts], by_value[stops - 1])))


def evenly(count: int, most: int) -> Numbers:
    """Return positions of at most ``most`` of ``count`` points, evenly spread."""
    if count <= most:
        return np.arange(count, dtype=np.int64)
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64))


def bounds(groups: Numbers) -> tuple[Numbers, Numbers]:
    """Return where each run of equal numbers starts and stops (exclusive)."""
    if not len(groups):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    changes = np.flatnonzero(np.diff(groups)) + 1
    return np.concatenate(([0], changes)), np.concatenate((changes, [len(groups)]))
