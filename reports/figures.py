"""Series to plotly figures, as plain data: dictionaries in plotly's own schema, ready for JSON.

Every figure has the same time axis, the faults as shaded bands with their names above, dotted lines where phases
begin, and a red line at each event that proves a broken property. Long series are thinned (``sampling``) and packed
as binary arrays, so that a page with hundreds of partitions stays small. Colours of text and grid are the page's
(its script sets them), because it follows the reader's light or dark scheme.

Names that come from the run are escaped: plotly reads some HTML in labels.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from nemesis.reports.clients import OUTCOMES, Operations, quantiles, rates
from nemesis.reports.marks import Marks, with_marks
from nemesis.reports.sampling import Floats, evenly, nice_width, thinned
from nemesis.reports.series import Line, PartitionSeries, Reign, RunSeries

Figure = dict[str, Any]

POINT_BUDGET: Final = 160_000
"""Points of all partitions together, shared out evenly."""
MAX_EPOCH_LINES: Final = 40
MAX_CLIENT_MARKS: Final = 1_500
RATE_BINS: Final = 150

PALETTE: Final = (
    *("#3b82c4", "#e08a1e", "#2f9e66", "#c2497c", "#7a5cc0", "#0f9aa8", "#9a7b3c", "#8b8f98"),
)
OUTCOME_COLOURS: Final = {"ok": "#2f9e66", "fail": "#e08a1e", "info": "#c2497c"}


def colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def controllers(run: RunSeries, marks: Marks) -> Figure | None:
    """The controller epoch as a step line, each step named by the broker that won it."""
    won = [reign for reign in run.reigns if not reign.resigned]
    if not won:
        return None
    lost = [reign for reign in run.reigns if reign.resigned]
    won, late = _split_late(won)
    x = [reign.at_s for reign in won]
    y = [reign.epoch for reign in won]
    names = [f"broker-{reign.node}" for reign in won]
    step = {
        **_trace("controller epoch", x, y, line={"shape": "hv", "width": 2, "color": colour(0)}),
        "mode": "lines+markers+text" if len(won) <= 30 else "lines+markers",
        "x": [*x, run.duration_s],
        "y": [*y, y[-1]],
        "text": [*names, ""],
        "textposition": "top right",
        "textfont": {"size": 11},
        "marker": {"size": [7] * len(won) + [0], "color": colour(0)},
        "hovertemplate": "epoch %{y} to %{text} at %{x:.3f} s<extra></extra>",
    }
    traces = [step]
    if lost:
        traces.append(
            {
                **_trace(
                    "resigned", [reign.at_s for reign in lost], [reign.epoch for reign in lost]
                ),
                "mode": "markers",
                "marker": {"symbol": "x-thin-open", "size": 10, "color": colour(3)},
                "text": [f"broker-{reign.node}" for reign in lost],
                "hovertemplate": "%{text} gave up epoch %{y} at %{x:.3f} s<extra></extra>",
            }
        )
    if late:
        traces.append(
            {
                **_trace(
                    "learnt late", [reign.at_s for reign in late], [reign.epoch for reign in late]
                ),
                "mode": "markers",
                "marker": {"symbol": "circle-open", "size": 9, "color": colour(0)},
                "text": [f"broker-{reign.node}" for reign in late],
                "hovertemplate": "%{text} learnt at %{x:.3f} s that it had won epoch %{y}<extra></extra>",
            }
        )
    epochs = [*y, *(reign.epoch for reign in (*lost, *late))]
    low, high = min(epochs), max(epochs)
    axis = {**_axis("epoch"), "range": _room(low, high), "dtick": _tick_step(high - low)}
    return with_marks(traces, {"yaxis": axis, "height": 250}, marks)


def _split_late(won: Sequence[Reign]) -> tuple[list[Reign], list[Reign]]:
    """Part elections from those that the winner learnt of, as paused processes do, when a later one was known."""
    steps: list[Reign] = []
    late: list[Reign] = []
    for reign in won:
        (late if steps and reign.epoch < steps[-1].epoch else steps).append(reign)
    return steps, late


def leader_epochs(run: RunSeries, marks: Marks) -> tuple[Figure | None, int]:
    """One step line per partition, and how many partitions were left out (those with the fewest elections)."""
    with_elections = [partition for partition in run.partitions if len(partition.leader_epochs)]
    chosen = sorted(with_elections, key=lambda partition: -len(partition.leader_epochs))[
        :MAX_EPOCH_LINES
    ]
    chosen.sort(key=lambda partition: partition.name)
    traces = []
    for number, item in enumerate(chosen):
        line = item.leader_epochs
        leaders = [f"broker-{leader}" if leader >= 0 else "no leader" for leader in item.leaders]
        dash = ("solid", "dash", "dot", "dashdot")[number // len(PALETTE) % 4]
        traces.append(
            {
                **_trace(
                    html.escape(item.name),
                    _packed([*line.x.tolist(), run.duration_s]),
                    [*line.y.tolist(), int(line.y[-1])],
                    line={"shape": "hv", "width": 1.6, "color": colour(number), "dash": dash},
                ),
                "mode": "lines+markers",
                "marker": {"size": 4},
                "text": [*leaders, leaders[-1]],
                "hovertemplate": "epoch %{y}, %{text}, %{x:.3f} s<extra>%{fullData.name}</extra>",
            }
        )
    if not traces:
        return None, 0
    highest = max(int(partition.leader_epochs.y.max()) for partition in chosen)
    axis = {**_axis("leader epoch"), "range": [-0.2, highest + 0.4], "dtick": _tick_step(highest)}
    layout = {"yaxis": axis, "height": 300, "showlegend": True}
    return with_marks(traces, layout, marks), len(with_elections) - len(chosen)


def partition_layout(marks: Marks) -> dict[str, Any]:
    """The layout that all partitions' figures share: who is in the ISR, how many, and the offsets."""
    layout = {
        "height": 600,
        "showlegend": True,
        "xaxis": {"anchor": "y3"},
        "yaxis": {"type": "category", "domain": [0.83, 1.0], "fixedrange": True},
        "yaxis2": {**_axis("ISR size"), "domain": [0.65, 0.78], "rangemode": "tozero", "dtick": 1},
        "yaxis3": {**_axis("offset"), "domain": [0.0, 0.6], "tickformat": ",d"},
    }
    layout_of: dict[str, Any] = with_marks([], layout, marks)["layout"]
    return layout_of


def partition_traces(
    partition: PartitionSeries, duration_s: float, most: int
) -> list[dict[str, Any]]:
    """The traces of one partition; each line has at most about ``most`` points."""
    traces = _membership(partition, duration_s)
    for node, line in sorted(partition.log_ends.items()):
        style = {"shape": "hv", "width": 1.5, "color": colour(node - 1)}
        traces.append(_offsets(f"LEO broker-{node}", line, duration_s, most, style))
    if len(partition.high_watermark):
        style = {"shape": "hv", "width": 2.2, "color": "#d64545", "dash": "dot"}
        traces.append(_offsets("HW (leader's)", partition.high_watermark, duration_s, most, style))
    return traces


def points_per_line(run: RunSeries) -> int:
    """How many points each line may have if all partitions are to stay within the budget."""
    lines = sum(1 + len(partition.log_ends) for partition in run.partitions)
    return max(40, min(2_000, POINT_BUDGET // max(1, lines)))


def _membership(partition: PartitionSeries, duration_s: float) -> list[dict[str, Any]]:
    """Per broker when it was in the ISR (pale) and when it led (full), and the size of the ISR."""
    if not partition.isr:
        return []
    times = [at_s for at_s, _ in partition.isr]
    spans = list(zip(times, [*times[1:], duration_s], strict=True))
    brokers = sorted({node for _, isr in partition.isr for node in isr} | set(partition.log_ends))
    led = partition.leader_epochs.x.tolist()
    reigns = list(zip(led, [*led[1:], duration_s], strict=True))
    traces = []
    for node in reversed(brokers):
        member = [span for span, (_, isr) in zip(spans, partition.isr, strict=True) if node in isr]
        leader = [
            span for span, holder in zip(reigns, partition.leaders, strict=True) if holder == node
        ]
        for label, intervals, width, opacity in (
            ("in the ISR", member, 12, 0.35),
            ("leader", leader, 12, 1.0),
        ):
            traces.append(
                {
                    **_trace(f"broker-{node} {label}", *_strokes(intervals, f"broker-{node}")),
                    "line": {"width": width, "color": colour(node - 1)},
                    "opacity": opacity,
                    "showlegend": False,
                    "hovertemplate": f"{label}: broker-{node}, %{{x:.3f}} s<extra></extra>",
                }
            )
    sizes = [len(isr) for _, isr in partition.isr]
    members = [", ".join(map(str, isr)) for _, isr in partition.isr]
    size = _trace(
        "ISR size",
        _packed([*times, duration_s]),
        [*sizes, sizes[-1]],
        line={"shape": "hv", "width": 1.8, "color": PALETTE[-1]},
    )
    hover = "ISR [%{text}], %{x:.3f} s<extra></extra>"
    text = [*members, members[-1]]
    traces.append(
        {**size, "yaxis": "y2", "text": text, "hovertemplate": hover, "showlegend": False}
    )
    return traces


def _strokes(spans: Sequence[tuple[float, float]], level: str) -> tuple[list[Any], list[Any]]:
    """Horizontal strokes as one line with gaps; neighbouring spans are joined."""
    x: list[float | None] = []
    for start, stop in spans:
        if len(x) >= 2 and x[-2] == start:
            x[-2] = stop
        else:
            x += [start, stop, None]
    x = x or [None]
    return x, [None if value is None else level for value in x] if x != [None] else [level]


def _offsets(
    name: str, line: Line, duration_s: float, most: int, style: Mapping[str, Any]
) -> dict[str, Any]:
    kept = thinned(line.x, line.y, most)
    x = np.append(line.x[kept], duration_s)
    y = np.append(line.y[kept], line.y[-1])
    return {
        **_trace(name, _packed(x), _packed(y), line=style),
        "yaxis": "y3",
        "hovertemplate": "%{y:,d} at %{x:.3f} s<extra>%{fullData.name}</extra>",
    }


def operations(name: str, calls: Operations, duration_s: float, marks: Marks) -> Figure | None:
    """Above: operations per second by outcome. Below: latencies, of ok as quantiles, of others one by one."""
    if not len(calls):
        return None
    width_s = nice_width(duration_s, RATE_BINS)
    middle, per_s = rates(calls.invoked_s + calls.latency_s, calls.outcome, duration_s, width_s)
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "name": kind,
            "x": _packed(middle),
            "y": _packed(per_s[kind].astype(np.float32)),
            "width": width_s,
            "marker": {"color": OUTCOME_COLOURS[kind], "line": {"width": 0}},
            "hovertemplate": "%{y:,.4g}/s at %{x:.3f} s<extra>%{fullData.name}</extra>",
        }
        for kind in OUTCOMES
        if per_s[kind].any()
    ]
    traces += _latencies(calls, width_s)
    layout = {
        "height": 420,
        "barmode": "stack",
        "bargap": 0,
        "showlegend": True,
        "xaxis": {"anchor": "y2"},
        "yaxis": {**_axis(f"{html.escape(name)}s per s"), "domain": [0.55, 1.0]},
        "yaxis2": {
            **_axis("latency, ms"),
            "domain": [0.0, 0.46],
            "type": "log",
            "dtick": 1,
            "tickformat": "~g",
            "minexponent": 4,
        },
    }
    return with_marks(traces, layout, marks)


def _latencies(calls: Operations, width_s: float) -> list[dict[str, Any]]:
    ok = calls.outcome == OUTCOMES.index("ok")
    traces = []
    if ok.any():
        middle, (half, most, worst) = quantiles(
            calls.invoked_s[ok], calls.latency_s[ok], width_s, (0.5, 0.99, 1.0)
        )
        for label, values, style in (
            ("ok, median", half, {"width": 2, "color": "#3b82c4"}),
            ("ok, 99 %", most, {"width": 1.4, "color": "#7a5cc0"}),
            ("ok, slowest", worst, {"width": 1.2, "color": "#8b8f98", "dash": "dot"}),
        ):
            traces.append(_latency(label, middle, values, mode="lines", line=style))
    for number, kind in enumerate(OUTCOMES[1:], start=1):
        rows = np.flatnonzero(calls.outcome == number)
        if len(rows):
            kept = rows[evenly(len(rows), MAX_CLIENT_MARKS)]
            marker = {"size": 4, "color": OUTCOME_COLOURS[kind], "opacity": 0.7}
            x, y = calls.invoked_s[kept], calls.latency_s[kept]
            traces.append(_latency(f"{kind}, each", x, y, mode="markers", marker=marker))
    return traces


def _latency(name: str, x: Floats, latency_s: Floats, **style: Any) -> dict[str, Any]:
    return {
        **_trace(name, _packed(x), _packed((latency_s * 1000).astype(np.float32))),
        **style,
        "yaxis": "y2",
        "hovertemplate": "%{y:,.4g} ms at %{x:.3f} s<extra>%{fullData.name}</extra>",
    }


def _trace(name: str, x: Any, y: Any, **more: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, **more}


def _axis(title: str) -> dict[str, Any]:
    return {"title": {"text": title, "font": {"size": 12}, "standoff": 8}, "fixedrange": True}


def _tick_step(span: int) -> int:
    """The distance of ticks, in whole numbers, for about six of them."""
    return max(1, -(-span // 6))


def _room(low: int, high: int) -> list[float]:
    """A range with room above for the labels of the steps."""
    margin = max(0.6, (high - low) * 0.2)
    return [low - margin / 2, high + margin * 1.4]


def _packed(values: Floats | Sequence[float] | np.ndarray[Any, Any]) -> dict[str, str]:
    """An array as plotly's binary form: 4 bytes a value where that is exact enough for a plot."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        fits = not len(array) or (abs(int(array.min())) < 2**31 and int(array.max()) < 2**31)
        array = array.astype("<i4" if fits else "<f8")
    else:
        near = not len(array) or float(np.nanmax(np.abs(array))) < 10_000
        array = array.astype("<f4" if near else "<f8")
    name = {"<i4": "i4", "<f4": "f4", "<f8": "f8"}[array.dtype.str]
    return {"dtype": name, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
