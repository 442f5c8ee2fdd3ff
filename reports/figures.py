"""Series to charts (``charts``): controllers, leader epochs, a partition's replicas, operations.

Long series are thinned (``sampling``), so that a page with hundreds of partitions stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.reports.charts.panel import (
    PALETTE,
    Chart,
    Key,
    Layer,
    Note,
    Panel,
    chart,
    colour,
    keys_of,
    lane_height,
)
from nemesis.reports.charts.paths import Interval, columns, dots, joined, line, steps, strokes
from nemesis.reports.charts.scale import Scale, linear, logarithmic, rounded_step
from nemesis.reports.clients import OUTCOMES, Operations, quantiles, rates
from nemesis.reports.sampling import Floats, evenly, thinned
from nemesis.reports.series import Line, PartitionSeries, Reign, RunSeries
from nemesis.reports.terms import controller_terms

POINT_BUDGET: Final = 60_000
"""Points of all partitions together, shared out evenly."""
MAX_POINTS: Final = 1_000
"""Of a line: a chart is about this many pixels wide."""
MAX_EPOCH_LINES: Final = 40
MAX_CLIENT_MARKS: Final = 600
RATE_BINS: Final = 150
GAP_BINS: Final = 1.5
"""A line of quantiles is broken where a bin between two others holds no operation."""

LEAST_LATENCY_MS: Final = 0.01
"""Shorter latencies, as only simulated time knows them, are drawn at the bottom."""

OUTCOME_COLOURS: Final = {"ok": "#2f9e66", "fail": "#e08a1e", "info": "#c2497c"}
HIGH_WATERMARK_COLOUR: Final = "#d64545"
DASHES: Final = ("", "6 3", "2 3", "7 3 2 3")


def controllers(run: RunSeries, without: Sequence[Interval] = ()) -> Chart | None:
    """The controller epoch as a step line, each step named by the broker that won it.

    The line is broken where the cluster was ``without`` a controller.
    """
    terms, late = controller_terms(run, without)
    if not terms:
        return None
    lost = [reign for reign in run.reigns if reign.resigned]
    epochs = [term.epoch for term in terms] + [reign.epoch for reign in (*late, *lost)]
    scale = Scale(min(epochs) - 0.5, max(epochs) + 1.2, is_whole=True)
    x = np.array([term.start_s for term in terms], dtype=np.float64)
    y = np.array([term.epoch for term in terms], dtype=np.float64)
    spans = [(term.start_s, term.stop_s) for term in terms]
    layers = [
        Layer(steps(x, y, scale, run.duration_s, spans), colour(0), width=2.5),
        *_marks_of(lost, scale, run, colour(3), "{} resigned from epoch {}"),
        *_marks_of(late, scale, run, PALETTE[-1], "{} learned late that it had won epoch {}"),
    ]
    tops = (1.0 - scale.shares(y + 0.8)).tolist()
    ends = [*x[1:].tolist(), run.duration_s]
    notes = [
        Note(term.start_s, end, top, f"broker-{term.node}", f"epoch {term.epoch}")
        for term, end, top in zip(terms, ends, tops, strict=True)
    ]
    keys = [Key("controller epoch", colour(0))]
    if lost:
        keys.append(Key("resigned", colour(3), "dots"))
    if late:
        keys.append(Key("learned late of its election", PALETTE[-1], "dots"))
    panel = Panel("epoch", 170, tuple(layers), scale, notes=tuple(notes))
    return chart("Controller epoch over time", [panel], keys)


def _points(reigns: Sequence[Reign]) -> tuple[Floats, Floats]:
    return (
        np.array([reign.at_s for reign in reigns], dtype=np.float64),
        np.array([reign.epoch for reign in reigns], dtype=np.float64),
    )


def _marks_of(
    reigns: Sequence[Reign], scale: Scale, run: RunSeries, shade: str, title: str
) -> Iterator[Layer]:
    for reign in reigns:
        point = dots(*_points([reign]), scale, run.duration_s)
        text = f"{title.format(f'broker-{reign.node}', reign.epoch)}, {reign.at_s:.3f} s"
        yield Layer(point, shade, "dots", width=8, title=text)


def leader_epochs(run: RunSeries) -> tuple[Chart | None, int]:
    """One step line per partition, and how many partitions were left out (those with the fewest elections)."""
    with_elections = [partition for partition in run.partitions if len(partition.leader_epochs)]
    chosen = sorted(with_elections, key=lambda partition: -len(partition.leader_epochs))
    chosen = sorted(chosen[:MAX_EPOCH_LINES], key=lambda partition: partition.name)
    if not chosen:
        return None, 0
    highest = max(int(partition.leader_epochs.y.max()) for partition in chosen)
    scale = Scale(-0.3, highest + 0.5, is_whole=True)
    named = []
    for number, item in enumerate(chosen):
        epochs = item.leader_epochs
        path = steps(
            epochs.x, epochs.y.astype(np.float64), scale, run.duration_s, [(0.0, run.duration_s)]
        )
        dash = DASHES[number // len(PALETTE) % len(DASHES)]
        named.append((item.name, Layer(path, colour(number), dash=dash, title=item.name)))
    layers = tuple(layer for _, layer in named)
    panel = Panel("leader epoch", 230, layers, scale)
    shown = chart("Leader epochs over time", [panel], keys_of(named))
    return shown, len(with_elections) - len(chosen)


def replicas(partition: PartitionSeries, run: RunSeries, most: int) -> Chart:
    """Who was in the ISR of a partition and led it, how large the ISR was, and the offsets.

    Each line has at most about ``most`` points.
    """
    named = list(_offsets(partition, run, most))
    panels = [_membership(partition, run.duration_s), _isr_size(partition, run.duration_s)]
    if named:
        scale = _offset_scale(partition)
        panels.append(Panel("offset", 260, tuple(layer for _, layer in named), scale))
    label = f"Replicas of {partition.name}: ISR, leader and offsets over time"
    return chart(label, panels, keys_of(named))


def points_per_line(run: RunSeries) -> int:
    """How many points each line may have if all partitions are to stay within the budget."""
    lines = sum(1 + len(partition.log_ends) for partition in run.partitions)
    return max(40, min(MAX_POINTS, POINT_BUDGET // max(1, lines)))


def _membership(partition: PartitionSeries, duration_s: float) -> Panel | None:
    """Per broker when it was in the ISR (pale) and when it led (full)."""
    if not partition.isr:
        return None
    times = [at_s for at_s, _ in partition.isr]
    spans = list(zip(times, [*times[1:], duration_s], strict=True))
    brokers = sorted({node for _, isr in partition.isr for node in isr} | set(partition.log_ends))
    led = partition.leader_epochs.x.tolist()
    terms = list(zip(led, [*led[1:], duration_s], strict=True))
    layers = []
    for number, node in enumerate(brokers):
        row = lane_height(number, len(brokers))
        member = [span for span, (_, isr) in zip(spans, partition.isr, strict=True) if node in isr]
        leader = [
            span for span, holder in zip(terms, partition.leaders, strict=True) if holder == node
        ]
        for state, intervals, opacity in (("in the ISR", member, 0.35), ("leader", leader, 1.0)):
            path = strokes(joined(intervals), row, duration_s)
            title = f"broker-{node}: {state}"
            layers.append(Layer(path, colour(node - 1), "band", 12, title=title, opacity=opacity))
    names = tuple(f"broker-{node}" for node in brokers)
    return Panel("in the ISR, leader", 24 * len(brokers), tuple(layers), lanes=names)


def _isr_size(partition: PartitionSeries, duration_s: float) -> Panel | None:
    if not partition.isr:
        return None
    x = np.array([at_s for at_s, _ in partition.isr], dtype=np.float64)
    y = np.array([len(isr) for _, isr in partition.isr], dtype=np.float64)
    scale = Scale(0.0, float(y.max()) + 0.3, is_whole=True)
    path = steps(x, y, scale, duration_s, [(0.0, duration_s)])
    return Panel("ISR size", 68, (Layer(path, PALETTE[-1], title="ISR size"),), scale)


def _offset_scale(partition: PartitionSeries) -> Scale:
    lines = [*partition.log_ends.values(), partition.high_watermark]
    values = [float(bound) for each in lines if len(each) for bound in (each.y.min(), each.y.max())]
    return linear(values, is_whole=True)


def _offsets(partition: PartitionSeries, run: RunSeries, most: int) -> Iterator[tuple[str, Layer]]:
    """Log end offsets, interrupted while the broker's process did not run, and the leader's high watermark."""
    scale = _offset_scale(partition)
    for node, ends in sorted(partition.log_ends.items()):
        path = _thin_steps(ends, scale, run, most, run.running(node))
        name = f"broker-{node}"
        yield f"log end, {name}", Layer(path, colour(node - 1), title=f"log end offset, {name}")
    if len(partition.high_watermark):
        run_span = [(0.0, run.duration_s)]
        path = _thin_steps(partition.high_watermark, scale, run, most, run_span)
        title = "high watermark of the leader"
        yield title, Layer(path, HIGH_WATERMARK_COLOUR, width=2.2, dash="2 3", title=title)


def _thin_steps(
    values: Line, scale: Scale, run: RunSeries, most: int, spans: Sequence[Interval]
) -> str:
    kept = thinned(values.x, values.y, most)
    return steps(values.x[kept], values.y[kept].astype(np.float64), scale, run.duration_s, spans)


def operations(name: str, calls: Operations, duration_s: float) -> Chart | None:
    """Above: operations per second by outcome. Below: latencies, of ok as quantiles, of others each."""
    if not len(calls):
        return None
    width_s = rounded_step(duration_s, RATE_BINS)
    latencies = list(_latencies(calls, width_s, duration_s))
    rate_layers = list(rate_bars(calls, duration_s, width_s))
    panels = [
        Panel(
            f"{name}s per s",
            150,
            tuple(layer for _, layer in rate_layers),
            rate_scale(calls, duration_s, width_s),
        ),
        Panel("latency, ms", 190, tuple(layer for _, layer in latencies), _latency_scale(calls)),
    ]
    return chart(f"{name}: rate and latency over time", panels, keys_of([*rate_layers, *latencies]))


def rate_bars(calls: Operations, duration_s: float, width_s: float) -> Iterator[tuple[str, Layer]]:
    """Operations per second of each bin, stacked by outcome."""
    middle, per_s = rates(calls.invoked_s + calls.latency_s, calls.outcome, duration_s, width_s)
    scale = rate_scale(calls, duration_s, width_s)
    edges = np.append(middle - width_s / 2, middle[-1] + width_s / 2)
    low = np.zeros(len(middle))
    for kind in OUTCOMES:
        high = low + per_s[kind]
        if per_s[kind].any():
            path = columns(edges, low, high, scale, duration_s)
            yield kind, Layer(path, OUTCOME_COLOURS[kind], "fill", title=f"{kind}, by completion")
        low = high


def rate_scale(calls: Operations, duration_s: float, width_s: float) -> Scale:
    _, per_s = rates(calls.invoked_s + calls.latency_s, calls.outcome, duration_s, width_s)
    total = np.sum([per_s[kind] for kind in OUTCOMES], axis=0)
    return Scale(0.0, float(total.max()) * 1.05)


def _latency_scale(calls: Operations) -> Scale:
    return logarithmic(calls.latency_s * 1000, LEAST_LATENCY_MS)


def _latencies(calls: Operations, width_s: float, duration_s: float) -> Iterator[tuple[str, Layer]]:
    scale = _latency_scale(calls)
    ok = calls.outcome == OUTCOMES.index("ok")
    if ok.any():
        middle, (half, most, worst) = quantiles(
            calls.invoked_s[ok], calls.latency_s[ok], width_s, (0.5, 0.99, 1.0)
        )
        for label, values, look in (
            ("ok, median", half, Layer("", "#3b82c4", width=2)),
            ("ok, 99 %", most, Layer("", "#7a5cc0", width=1.4)),
            ("ok, slowest", worst, Layer("", "#8b8f98", width=1.2, dash="2 3")),
        ):
            path = line(middle, values * 1000, scale, duration_s, width_s * GAP_BINS)
            yield label, Layer(path, look.shade, width=look.width, dash=look.dash, title=label)
    for number, kind in enumerate(OUTCOMES[1:], start=1):
        rows: Numbers = np.flatnonzero(calls.outcome == number)
        if len(rows):
            kept = rows[evenly(len(rows), MAX_CLIENT_MARKS)]
            x, y = calls.invoked_s[kept], calls.latency_s[kept] * 1000
            path = dots(x, y, scale, duration_s)
            name = f"{kind}, each"
            yield name, Layer(path, OUTCOME_COLOURS[kind], "dots", 4, title=name, opacity=0.7)
