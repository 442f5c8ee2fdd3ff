"""Bars in lanes over time.

Bars of a lane that overlap stand in rows below each other. The text of a bar may be longer than the bar: it has the
room up to the next bar of its row, and is cut there, so that no text lies on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

_LEAST_SHARE: Final = 0.012
"""The share of the time axis that a bar with its text takes at least."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted, in a lane."""

    start_s: float
    stop_s: float
    text: str
    title: str
    shade: str
    look: str = "fault"
    row: int = 0
    room_s: float = 0.0
    """Until when its text may reach."""


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    bars: tuple[Bar, ...]
    rows: int


def lane_of(name: str, groups: Sequence[Sequence[Bar]], duration_s: float) -> Lane:
    """Put the bars of each group into rows of their own, as few as there can be."""
    placed: list[Bar] = []
    rows = 0
    for group in groups:
        own = _rowed(group, rows, duration_s * _LEAST_SHARE)
        placed += own
        rows = max([rows, *(bar.row + 1 for bar in own)])
    return Lane(name, tuple(_with_room(placed, duration_s)), rows)


def _rowed(bars: Sequence[Bar], first_row: int, least_s: float) -> list[Bar]:
    free_from: list[float] = []
    placed = []
    for bar in sorted(bars, key=lambda bar: bar.start_s):
        row = next((n for n, free_s in enumerate(free_from) if free_s <= bar.start_s), None)
        if row is None:
            row = len(free_from)
            free_from.append(0.0)
        free_from[row] = max(bar.stop_s, bar.start_s + least_s)
        placed.append(replace(bar, row=first_row + row))
    return placed


def _with_room(bars: Sequence[Bar], duration_s: float) -> list[Bar]:
    """Give the text of each bar the room up to the next bar of its row."""
    return [
        replace(
            bar,
            room_s=min(
                [
                    duration_s,
                    *(b.start_s for b in bars if b.row == bar.row and b.start_s > bar.start_s),
                ]
            ),
        )
        for bar in bars
    ]
