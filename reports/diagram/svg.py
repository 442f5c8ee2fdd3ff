"""A scene to SVG: columns with life lines, a row per stop, arrows between stops.

Columns are as wide as their labels, so that none lies on another column. Rows are evenly spaced, so that what happens
within a millisecond can be read; where time passes without anything worth a row, a gap says how much. Fonts, rules and
the colours of text are the page's (``templates/diagram.css``); arrows are coloured by the epoch that they carry.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from nemesis.reports.charts.panel import colour
from nemesis.reports.diagram.gather import ProofTimes
from nemesis.reports.diagram.items import Identity, Item, Scene, Stop, Tone

LEFT_PX: Final = 92
LEAST_COLUMN_PX: Final = 120
CHARACTER_PX: Final = 7.0
"""How wide a character of a label is, at most."""
INDENT_PX: Final = 24
"""From where a column begins to its life line; a label begins right of that."""
LABEL_PX: Final = 9
ROW_PX: Final = 21
TOP_PX: Final = 46
GAP_PX: Final = 16
GAP_NS: Final = 200_000_000
"""Longer than this without a row is drawn as a gap."""
LOOP_PX: Final = 22
LIFT_PX: Final = 7
BAR_PX: Final = 12
STUB_PX: Final = 80
NS: Final = 1e9
TONES: Final = {
    Tone.PLAIN: "var(--ink)",
    Tone.GOOD: "var(--soft)",
    Tone.BAD: "var(--invalid)",
    Tone.FAULT: "var(--unknown)",
}

_LABEL: Final = 'aria-label="Messages between nodes around the finding"'


@dataclass(frozen=True, slots=True)
class Row:
    """One stop in its place."""

    item: int
    stop: int
    time: int
    y: float


class Drawing:
    """Where everything lies. Pure: a scene has one drawing."""

    def __init__(self, scene: Scene, proof: frozenset[Identity], origin_ns: int) -> None:
        self._scene = scene
        self._proof = proof
        self._origin = origin_ns
        self._gaps: list[tuple[float, int]] = []
        widths = [self._width(column) for column in scene.columns]
        self._left = dict(zip(scene.columns, accumulate(widths, initial=LEFT_PX), strict=False))
        self.rows = self._layout()
        self._y = {(row.item, row.stop): row.y for row in self.rows}
        self.width = LEFT_PX + sum(widths) + INDENT_PX
        self.height = (self.rows[-1].y if self.rows else TOP_PX) + ROW_PX

    def _width(self, column: str) -> int:
        """So wide that no label reaches the next column's life line."""
        labels = [
            _label(item, index)
            for item in self._scene.items
            for index, stop in enumerate(item.stops)
            if stop.column == column
        ]
        longest = max(map(len, [column, *labels]))
        return max(LEAST_COLUMN_PX, math.ceil(longest * CHARACTER_PX) + LABEL_PX + INDENT_PX // 2)

    def _layout(self) -> list[Row]:
        stops = [
            (stop.time, number, index)
            for number, item in enumerate(self._scene.items)
            for index, stop in enumerate(item.stops)
            if not stop.shares_row
        ]
        rows: list[Row] = []
        y, before = TOP_PX + 0.0, None
        for time, item, stop in sorted(stops):
            lift = self._lift(item, stop)
            # Labels keep a row's distance, also where one is moved down and the next one up.
            y += ROW_PX + (max(0, self._lift(rows[-1].item, rows[-1].stop) - lift) if rows else 0)
            if before is not None and time - before >= GAP_NS:
                self._gaps.append((y - ROW_PX / 2 + GAP_PX / 2, time - before))
                y += GAP_PX
            rows.append(Row(item, stop, time, y))
            before = time
        return rows

    def _lift(self, number: int, index: int) -> int:
        """How far a label is moved off the arrow that lies beside it: up (negative) or down, in pixels."""
        item = self._scene.items[number]
        x = self._x(item.stops[index].column)
        after = item.stops[index + 1].column if index + 1 < len(item.stops) else item.lost_to
        if after is not None and after in self._scene.columns and self._x(after) > x:
            return -LIFT_PX
        before = item.stops[index - 1].column if index else None
        return LIFT_PX if before is not None and self._x(before) > x else 0

    def markup(self) -> str:
        """Return the ``<svg>`` element."""
        parts = [
            *self._lifelines(),
            *self._bars(),
            *self._proof_rows(),
            *self._gap_marks(),
            *self._arrows(),
            *self._labels(),
        ]
        size = f'width="{self.width}" height="{self.height:g}"'
        box = f'viewBox="0 0 {self.width} {self.height:g}"'
        inside = "".join(parts)
        return f'<svg xmlns="{_NAMESPACE}" class="diagram" role="img" {_LABEL} {size} {box}>{inside}</svg>'

    def _x(self, column: str) -> float:
        return self._left[column] + INDENT_PX

    def _stop_y(self, item: int, stop: int) -> float:
        if (item, stop) in self._y:
            return self._y[item, stop]
        return self._y[item, stop + 1] - ROW_PX / 2

    def _lifelines(self) -> Iterator[str]:
        for column in self._scene.columns:
            x = self._x(column)
            yield f'<line class="life" x1="{x:g}" y1="{TOP_PX}" x2="{x:g}" y2="{self.height:g}"/>'
            yield f'<text class="head" x="{x - 8:g}" y="{TOP_PX - 14}">{html.escape(column)}</text>'

    def _bars(self) -> Iterator[str]:
        taken: dict[str, int] = {}
        for bar in self._scene.bars:
            lane = taken.get(bar.column, 0)
            taken[bar.column] = lane + 1
            top, bottom = self._y_of(bar.start), self.height
            if bar.stop is not None and self.rows and bar.stop <= self.rows[-1].time:
                bottom = self._y_of(bar.stop)
            x = self._x(bar.column) - BAR_PX / 2 - lane % 3 * 3
            yield (
                f'<rect class="bar" x="{x:g}" y="{top:g}" width="{BAR_PX}" height="{max(3.0, bottom - top):g}" rx="3">'
                f"<title>{html.escape(bar.label)}</title></rect>"
            )

    def _y_of(self, time: int) -> float:
        """The first row at or after the time; the top of the drawing if it was before all of them."""
        if not self.rows or time < self.rows[0].time:
            return TOP_PX
        return next((row.y for row in self.rows if row.time >= time), self.height)

    def _proof_rows(self) -> Iterator[str]:
        for number, item in enumerate(self._scene.items):
            for index, stop in enumerate(item.stops):
                if stop.event in self._proof:
                    y = self._stop_y(number, index) - ROW_PX / 2
                    yield f'<rect class="proof" x="2" y="{y:g}" width="{self.width - 4}" height="{ROW_PX}" rx="4"/>'

    def _gap_marks(self) -> Iterator[str]:
        for y, gap in self._gaps:
            yield f'<line class="gap" x1="{LEFT_PX - 6}" y1="{y:g}" x2="{self.width}" y2="{y:g}"/>'
            yield f'<text class="time" x="{LEFT_PX - 10}" y="{y + 3:g}">+{gap / NS:.3f} s</text>'

    def _arrows(self) -> Iterator[str]:
        for number, item in enumerate(self._scene.items):
            shade = "var(--soft)" if item.epoch is None else colour(item.epoch)
            for index, (start, stop) in enumerate(pairwise(item.stops)):
                begin = (self._x(start.column), self._stop_y(number, index))
                end = (self._x(stop.column), self._stop_y(number, index + 1))
                yield _arrow(begin, end, shade)
            if item.lost_to is not None and item.lost_to in self._scene.columns:
                yield _stub(
                    self._x(item.stops[0].column),
                    self._x(item.lost_to),
                    self._stop_y(number, 0),
                    shade,
                )

    def _labels(self) -> Iterator[str]:
        stops = [(row, self._scene.items[row.item]) for row in self.rows]
        shown = ""
        for row, item in stops:
            stop = item.stops[row.stop]
            seconds = f"{(stop.time - self._origin) / NS:,.4f}"
            if seconds != shown:
                yield f'<text class="time" x="{LEFT_PX - 10}" y="{row.y + 4:g}">{seconds}</text>'
                shown = seconds
            yield from self._label(stop, item, row)

    def _label(self, stop: Stop, item: Item, row: Row) -> Iterator[str]:
        x, shade = self._x(stop.column), TONES[stop.tone]
        y = row.y + 4 + self._lift(row.item, row.stop)
        strong = " strong" if stop.event in self._proof else ""
        yield f'<circle cx="{x:g}" cy="{row.y:g}" r="3.2" fill="{shade}"/>'
        yield (
            f'<text class="said{strong}" x="{x + LABEL_PX:g}" y="{y:g}" fill="{shade}">'
            f"{html.escape(_label(item, row.stop))}</text>"
        )


def _label(item: Item, stop: int) -> str:
    """What stands at a stop of the item; at its last one also how many like it there were."""
    is_last = stop == len(item.stops) - 1
    return item.stops[stop].text + (f" ×{item.count}" if item.count > 1 and is_last else "")


def draw(scene: Scene, instants: ProofTimes, origin_ns: int) -> str:
    """Return the scene as an ``<svg>`` element whose seconds count from ``origin_ns``."""
    return Drawing(scene, instants.identities, origin_ns).markup()


def _arrow(begin: tuple[float, float], end: tuple[float, float], shade: str) -> str:
    (x1, y1), (x2, y2) = begin, end
    path = f"M{x1:g} {y1:g}L{x2:g} {y2:g}"
    if x1 == x2:
        path = f"M{x1:g} {y1:g}C{x1 - LOOP_PX:g} {y1:g} {x2 - LOOP_PX:g} {y2:g} {x2:g} {y2:g}"
    head = _head(begin, end)
    return f'<path class="arrow" d="{path}" stroke="{shade}"/><path d="{head}" fill="{shade}"/>'


def _stub(x: float, target: float, y: float, shade: str) -> str:
    """The beginning of an arrow towards where it did not arrive."""
    length = STUB_PX if target > x else -STUB_PX
    end = x + length
    line = f'<path class="arrow dashed" d="M{x:g} {y:g}h{length:g}" stroke="{shade}"/>'
    return f'{line}<path class="lost" d="M{end - 4:g} {y - 4:g}l8 8m0 -8l-8 8"/>'


def _head(begin: tuple[float, float], end: tuple[float, float]) -> str:
    """A small triangle at the end of a line."""
    (x1, y1), (x2, y2) = begin, end
    dx, dy = (x2 - x1, y2 - y1) if x1 != x2 else (1.0, 0.0)
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    dx, dy = dx / length, dy / length
    x, y = x2 - 3 * dx, y2 - 3 * dy
    left = (x - 8 * dx - 4 * dy, y - 8 * dy + 4 * dx)
    right = (x - 8 * dx + 4 * dy, y - 8 * dy - 4 * dx)
    return f"M{x:.1f} {y:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z"


_NAMESPACE: Final = "http://www.w3.org/2000/svg"
