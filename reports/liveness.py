"""How long what was missing: a stroke for each stretch, as high as it is long, and a table for each kind of fault.

The strokes lie on the time axis that all plots share, so a stretch stands in the band of the fault that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Final

import numpy as np

from nemesis.checkers.framework.model import Distribution, Outcome, Result, Stretch
from nemesis.checkers.liveness.attribution import ALL, NO_FAULT
from nemesis.reports.charts.panel import Chart, Key, Layer, Panel, chart
from nemesis.reports.charts.paths import strokes, vertical
from nemesis.reports.charts.scale import Scale, logarithmic

NS: Final = 1e9

SAID: Final[Mapping[str, str]] = MappingProxyType(
    {
        "without-controller": "no controller",
        "without-leader": "no leader",
        "unwritable": "acks=all tried, nothing acknowledged",
        "below-min-isr": "ISR below min.insync.replicas",
        "isr-not-full": "ISR not full",
    }
)
COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "without-controller": "#7a5cc0",
        "without-leader": "#d64545",
        "unwritable": "#e08a1e",
        "below-min-isr": "#0f9aa8",
        "isr-not-full": "#8b8f98",
    }
)
_SHORTEST_S: Final = 1e-4
"""What is shorter is drawn as if it were so long."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What the stretches of one kind came to, all of them first, then by kind of fault."""

    said: str
    rows: tuple[Distribution, ...]


@dataclass(frozen=True, slots=True)
class Liveness:
    """What a report shows of it."""

    table: tuple[Missing, ...]
    chart: Chart | None
    left_out: int
    """Stretches that are counted and not drawn."""


def liveness(outcome: Outcome, origin_ns: int, duration_s: float) -> Liveness | None:
    """Return what the outcome says of it; None if nothing was measured."""
    distributions = [
        distribution for result in outcome.results for distribution in result.distributions
    ]
    stretches = [stretch for result in outcome.results for stretch in result.stretches]
    if not distributions:
        return None
    table = tuple(
        Missing(SAID.get(state, state), tuple(rows))
        for state, rows in groupby(distributions, lambda distribution: distribution.label)
    )
    count = sum(missing.rows[0].count for missing in table)
    return Liveness(table, _chart(stretches, origin_ns, duration_s), count - len(stretches))


def measured(result: Result) -> list[str]:
    """Return a line for each kind of stretch: ``no leader: 39 times, median 0.62 ms, longest 2.04 s``."""
    return [
        f"{SAID.get(distribution.label, distribution.label)}: {_in_short(distribution)}"
        for distribution in result.distributions
        if distribution.fault == ALL
    ]


def _in_short(distribution: Distribution) -> str:
    if not distribution.count:
        return "never"
    times = f"{distribution.count:,} time{'' if distribution.count == 1 else 's'}"
    return (
        f"{times}, median {lasted(distribution.median_ms)}, longest {lasted(distribution.max_ms)}"
    )


def lasted(milliseconds: float) -> str:
    """Return a length of time for reading: ``0.52 ms``, ``41 ms``, ``2.04 s``."""
    if milliseconds < 1_000:
        return f"{milliseconds:,.3g} ms"
    return f"{milliseconds / 1_000:,.2f} s"


def without_controller(outcome: Outcome, origin_ns: int) -> list[tuple[float, float]]:
    """Return when the cluster had no controller, in seconds, as far as that was measured."""
    return [
        _seconds(stretch, origin_ns)
        for result in outcome.results
        for stretch in result.stretches
        if stretch.label == "without-controller"
    ]


def _chart(stretches: Sequence[Stretch], origin_ns: int, duration_s: float) -> Chart | None:
    if not stretches:
        return None
    scale = logarithmic(np.array([_length_s(stretch) for stretch in stretches]), _SHORTEST_S)
    keys = [Key(SAID[state], COLOURS[state]) for state in SAID if _of(stretches, state)]
    # The least of them first: the others are drawn over it.
    layers = [
        _stroke(stretch, scale, origin_ns, duration_s)
        for state in reversed(list(SAID))
        for stretch in _of(stretches, state)
    ]
    panel = Panel("lasted, s", 230, tuple(layers), scale)
    return chart("What was missing over time, by how long it lasted", [panel], keys)


def _of(stretches: Sequence[Stretch], state: str) -> list[Stretch]:
    return [stretch for stretch in stretches if stretch.label == state]


def _stroke(stretch: Stretch, scale: Scale, origin_ns: int, duration_s: float) -> Layer:
    height = int(vertical(np.array([_length_s(stretch)]), scale)[0])
    path = strokes([_seconds(stretch, origin_ns)], height, duration_s)
    return Layer(path, COLOURS[stretch.label], width=3, title=described(stretch), opacity=0.8)


def described(stretch: Stretch) -> str:
    """Return a stretch in words: ``orders-0: no leader, 2.04 s, during kill``."""
    length = lasted((stretch.stop_ns - stretch.start_ns) / NS * 1_000)
    end = "" if stretch.is_over else ", to the end"
    fault = "" if stretch.fault == NO_FAULT else f", during {stretch.fault}"
    return f"{stretch.key}: {SAID.get(stretch.label, stretch.label)}, {length}{end}{fault}"


def _length_s(stretch: Stretch) -> float:
    """How long it lasted; what is shorter than can be drawn is drawn as if it were so long."""
    return max((stretch.stop_ns - stretch.start_ns) / NS, _SHORTEST_S)


def _seconds(stretch: Stretch, origin_ns: int) -> tuple[float, float]:
    return (stretch.start_ns - origin_ns) / NS, (stretch.stop_ns - origin_ns) / NS
