"""Bars in lanes over time.

Bars of a lane that overlap stand in rows below each other. The text of a bar may be longer than the bar: it has the
room up to the next bar of its row, and is cut there, so that no text lies on another. A labelled lane has texts that
are whole: they stand after the begin of their bar, or before it at the right edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

_LEAST_SHARE: Final = 0.012
"""The share of the time axis that a bar with its text takes at least."""
_CHARACTER_SHARE: Final = 0.0088
"""The share of the time axis that a character takes, in a window that is 1,280 pixels wide."""


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
    text_start_s: float = 0.0
    room_s: float = 0.0
    """Until when its text may reach."""

    @property
    def is_text_before(self) -> bool:
        """Whether the text stands before its bar."""
        return self.text_start_s < self.start_s


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


def labelled_lane(name: str, bars: Sequence[Bar], duration_s: float) -> Lane:
    """Put bars of which only the begin is drawn into as few rows as leave each text whole."""
    rows: list[list[Bar]] = []
    placed = []
    for bar in sorted(bars, key=lambda bar: bar.start_s):
        labelled = _with_whole_text(bar, duration_s)
        row = next((n for n, row in enumerate(rows) if _is_free(row, labelled)), len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(labelled)
        placed.append(replace(labelled, row=row))
    return Lane(name, tuple(placed), len(rows))


def _is_free(row: Sequence[Bar], bar: Bar) -> bool:
    return all(
        other.room_s <= bar.text_start_s or bar.room_s <= other.text_start_s for other in row
    )


def _with_whole_text(bar: Bar, duration_s: float) -> Bar:
    width_s = (len(bar.text) + 2) * _CHARACTER_SHARE * duration_s
    if bar.start_s + width_s <= duration_s:
        return replace(bar, text_start_s=bar.start_s, room_s=bar.start_s + width_s)
    return replace(bar, text_start_s=max(0.0, bar.start_s - width_s), room_s=bar.start_s)


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
            text_start_s=bar.start_s,
            room_s=min(
                [
                    duration_s,
                    *(b.start_s for b in bars if b.row == bar.row and b.start_s > bar.start_s),
                ]
            ),
        )
        for bar in bars
    ]
