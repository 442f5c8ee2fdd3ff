"""Lanes of bars on the time axis of the whole run, for the sections of groups and of transactions.

Positions are from 0 to ``WIDTH``; ``templates/run_lanes.html`` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nemesis.reports.series import NS, RunSeries

WIDTH: Final = 1_000
"""The right end of the time axis."""
SHORTEST: Final = 1.0
"""What is shorter is drawn with this width."""
_TICK_STEPS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600)
_MAX_TICKS: Final = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasts: ``left`` and ``width`` on the time axis."""

    left: float
    width: float
    label: str
    shade: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """Bars on one line, beside its name."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class RunAxis:
    """The time axis of a run; times are nanoseconds of its events, or seconds from its origin."""

    origin_ns: int
    duration_s: float

    def seconds(self, time_ns: int) -> float:
        return min((time_ns - self.origin_ns) / NS, self.duration_s)

    def bar(self, start_ns: int, stop_ns: int, label: str, shade: int = 0) -> Bar:
        return self.bar_s(self.seconds(start_ns), self.seconds(stop_ns), label, shade)

    def bar_s(self, start_s: float, stop_s: float, label: str, shade: int = 0) -> Bar:
        scale = WIDTH / max(self.duration_s, 1e-9)
        width = max((stop_s - start_s) * scale, SHORTEST)
        said = f"{label}: {start_s:,.2f} to {stop_s:,.2f} s"
        return Bar(round(start_s * scale, 1), round(width, 1), said, shade)


def lane_of(name: str, bars: Iterable[Bar]) -> Lane:
    """Leave out the short bars that would lie on each other: a lane has at most ``WIDTH`` of them."""
    kept: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.left):
        if not kept or bar.width > SHORTEST or bar.left >= kept[-1].left + SHORTEST:
            kept.append(bar)
    return Lane(name, tuple(kept))


def fault_bars(run: RunSeries, axis: RunAxis) -> tuple[Bar, ...]:
    """Return the faults that struck, which are drawn behind every lane."""
    return tuple(_faults(run, axis))


def _faults(run: RunSeries, axis: RunAxis) -> Iterator[Bar]:
    for fault in run.faults:
        if fault.start_s is not None:
            start_s = fault.start_s if fault.invoked_s is None else fault.invoked_s
            stop_s = run.duration_s if fault.stop_s is None else fault.stop_s
            yield axis.bar_s(start_s, stop_s, fault.label)


def axis_ticks(duration_s: float) -> tuple[tuple[float, str], ...]:
    """Return positions in percent and texts."""
    step = next((step for step in _TICK_STEPS_S if duration_s / step <= _MAX_TICKS), 7_200)
    count = int(duration_s / step)
    return tuple(
        (round(100 * number * step / duration_s, 2), f"{number * step:,} s")
        for number in range(count + 1)
        if duration_s
    )
