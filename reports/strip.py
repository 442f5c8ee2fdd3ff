"""The run at a glance: a lane for each broker with its terms as controller and the faults that struck it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nemesis.checkers.framework.model import Outcome, Stretch
from nemesis.reports.charts.panel import PALETTE, Chart, Layer, Panel, chart, lane_height
from nemesis.reports.charts.paths import strokes
from nemesis.reports.charts.scale import rounded_step
from nemesis.reports.clients import Operations
from nemesis.reports.figures import RATE_BINS, rate_bars, rate_scale
from nemesis.reports.lanes import Bar, Lane, labelled_lane, lane_of
from nemesis.reports.liveness import COLOURS, described
from nemesis.reports.marks import Band, Marks
from nemesis.reports.series import NS, RunSeries
from nemesis.reports.terms import Term

CLUSTER: Final = "cluster"
"""The lane of faults that strike no node of its own."""
UNAVAILABLE: Final = {
    "without-controller": "no control.",
    "without-leader": "no leader",
    "unwritable": "no acks",
}
"""Kinds of stretches in which clients or the cluster could not work, with the names of their lanes."""


@dataclass(frozen=True, slots=True)
class Strip:
    lanes: tuple[Lane, ...]
    chart: Chart
    """Below the lanes: what clients got done, and what was not available."""


def strip(
    run: RunSeries,
    marks: Marks,
    terms: Sequence[Term],
    outcome: Outcome,
    operations: Mapping[str, Operations],
) -> Strip:
    """Return what stands below the verdict."""
    lanes = [_phases(run), *_nodes(run, marks, terms)]
    panels = [_throughput(operations, run.duration_s), _outages(outcome, run)]
    label = "Operations of clients, and what was not available, over time"
    return Strip(tuple(lane for lane in lanes if lane.rows), chart(label, panels))


def _phases(run: RunSeries) -> Lane:
    bars = [
        Bar(phase.start_s, phase.stop_s, phase.name, phase.name, PALETTE[-1], "phase-bar")
        for phase in run.phases
    ]
    return labelled_lane("phase", bars, run.duration_s)


def _nodes(run: RunSeries, marks: Marks, terms: Sequence[Term]) -> Iterable[Lane]:
    """A lane for each broker, also for one that nothing happened to, then for each other node that faults strike."""
    by_node: dict[str, list[Bar]] = {}
    for band in marks.bands:
        for node in band.fault.targets or (CLUSTER,):
            by_node.setdefault(node, []).append(_fault_bar(band))
    brokers = {
        *(term.node for term in terms),
        *run.down,
        *(node for partition in run.partitions for node in partition.log_ends),
    }
    names = [f"broker-{node}" for node in sorted(brokers)]
    struck = sorted(by_node.keys() - set(names), key=lambda name: (name == CLUSTER, name))
    for name in (*names, *struck):
        states = [*_terms(name, terms), *_absences(name, run)]
        lane = lane_of(name, [states, by_node.get(name, [])], run.duration_s)
        yield replace(lane, rows=max(1, lane.rows))


def _fault_bar(band: Band) -> Bar:
    return Bar(band.start_s, band.stop_s, band.fault.name, band.title, band.shade)


def _terms(name: str, terms: Sequence[Term]) -> list[Bar]:
    return [
        Bar(
            term.start_s,
            term.stop_s,
            f"controller, epoch {term.epoch}",
            f"{name} is controller of epoch {term.epoch}: {term.start_s:.3f}–{term.stop_s:.3f} s",
            "var(--accent)",
            "term",
        )
        for term in terms
        if f"broker-{term.node}" == name
    ]


def _absences(name: str, run: RunSeries) -> list[Bar]:
    return [
        Bar(
            start_s,
            stop_s,
            "down",
            f"The process of {name} does not run: {start_s:.3f}–{stop_s:.3f} s",
            PALETTE[-1],
            "down",
        )
        for node, spans in run.down.items()
        for start_s, stop_s in spans
        if f"broker-{node}" == name
    ]


def _throughput(operations: Mapping[str, Operations], duration_s: float) -> Panel | None:
    """Operations of all functions per second, by how they ended."""
    completed = [calls for calls in operations.values() if len(calls)]
    if not completed:
        return None
    together = Operations(
        np.concatenate([calls.invoked_s for calls in completed]),
        np.concatenate([calls.latency_s for calls in completed]),
        np.concatenate([calls.outcome for calls in completed]),
        open=0,
    )
    width_s = rounded_step(duration_s, RATE_BINS)
    layers = tuple(layer for _, layer in rate_bars(together, duration_s, width_s))
    scale = rate_scale(together, duration_s, width_s)
    return Panel("client operations per s: ok, fail, info (unknown)", 64, layers, scale)


def _outages(outcome: Outcome, run: RunSeries) -> Panel | None:
    """Strokes where the cluster had no controller, partitions no leader, or writers no acknowledgement."""
    stretches = [stretch for result in outcome.results for stretch in result.stretches]
    states = [state for state in UNAVAILABLE if any(each.label == state for each in stretches)]
    if not states:
        return None
    layers = tuple(
        _outage(stretch, lane_height(states.index(stretch.label), len(states)), run)
        for stretch in stretches
        if stretch.label in states
    )
    names = tuple(UNAVAILABLE[state] for state in states)
    caption = "not available; darker: more partitions"
    return Panel(caption, 18 * len(states), layers, lanes=names)


def _outage(stretch: Stretch, height: int, run: RunSeries) -> Layer:
    interval = tuple((time - run.origin_ns) / NS for time in (stretch.start_ns, stretch.stop_ns))
    path = strokes([(interval[0], interval[1])], height, run.duration_s)
    title = described(stretch)
    return Layer(path, COLOURS[stretch.label], "band", 10, title=title, opacity=0.45)
