"""How long what was missing: a stroke for each stretch, as high as it is long, and a table for each kind of fault.

The strokes lie on the time axis that all plots share, so a stretch stands in the band of the fault that made it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from nemesis.checkers.framework.model import Distribution, Outcome, Result, Stretch
from nemesis.checkers.liveness.attribution import ALL, NO_FAULT
from nemesis.reports.marks import Marks, with_marks

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
_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
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
    figure: dict[str, Any] | None
    left_out: int
    """Stretches that are counted and not drawn."""


def liveness(outcome: Outcome, origin_ns: int, marks: Marks) -> Liveness | None:
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
    return Liveness(table, _figure(stretches, origin_ns, marks), count - len(stretches))


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


def _figure(stretches: Sequence[Stretch], origin_ns: int, marks: Marks) -> dict[str, Any] | None:
    if not stretches:
        return None
    traces = list(_traces(stretches, origin_ns))
    axis = {
        "title": {"text": "lasted, s", "font": {"size": 12}, "standoff": 8},
        "fixedrange": True,
        "type": "log",
        "dtick": 1,
        "tickformat": "~g",
        "minexponent": 4,
    }
    return with_marks(traces, {"yaxis": axis, "height": 330, "showlegend": True}, marks)


def _traces(stretches: Sequence[Stretch], origin_ns: int) -> Iterator[dict[str, Any]]:
    """One trace for each kind, the least of them first: the others are drawn over it."""
    for rank, state in enumerate(reversed(list(SAID))):
        x: list[float | None] = []
        y: list[float | None] = []
        text: list[str] = []
        for stretch in stretches:
            if stretch.label != state:
                continue
            length_s = (stretch.stop_ns - stretch.start_ns) / NS
            x += [(time_ns - origin_ns) / NS for time_ns in (stretch.start_ns, stretch.stop_ns)] + [
                None
            ]
            y += [max(length_s, _SHORTEST_S)] * 2 + [None]
            end = "" if stretch.is_over else ", to the end"
            fault = "" if stretch.fault == NO_FAULT else f"<br>during {html.escape(stretch.fault)}"
            said = f"{html.escape(stretch.key)}: {lasted(length_s * 1_000)}{end}{fault}"
            text += [said, said, ""]
        if x:
            yield {
                "type": "scatter",
                "mode": "lines+markers",
                "name": SAID[state],
                "legendrank": len(SAID) - rank,
                "x": x,
                "y": y,
                "text": text,
                "line": {"width": 3, "color": _COLOURS[state]},
                "marker": {"size": 5, "symbol": "line-ns-open", "color": _COLOURS[state]},
                "opacity": 0.8,
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
            }
