"""What is drawn into every figure: faults as bands with names above, phases, and where findings lie.

Names of faults stand above the plot in as many lanes as they need not to overlap, reckoned for a page 1,100 pixels
wide. A fault whose name finds no place within the lanes is numbered instead; the table of faults has all names.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nemesis.reports.series import Fault, Phase, RunSeries

PLOT_WIDTH_PX: Final = 980
CHARACTER_PX: Final = 5.6
LANE_PX: Final = 13
MAX_LANES: Final = 4
TOP_PX: Final = 14
BOTTOM_PX: Final = 44
MARGIN_PX: Final = TOP_PX + BOTTOM_PX
LEGEND_PX: Final = 46
"""From the bottom of the plot down to its legend: below the ticks and the title of the axis."""
MAX_LABEL: Final = 34
MIN_BAR_PX: Final = 4

FAULT_COLOURS: Final = (
    *("#d9822b", "#c2497c", "#7a5cc0", "#2b8fb3", "#8a9a2b", "#b35c3c", "#4f7d5c", "#6b7280"),
)
FINDING_COLOUR: Final = "#d11a2a"


@dataclass(frozen=True, slots=True)
class Marks:
    """What every figure of a run is marked with."""

    duration_s: float
    faults: tuple[Fault, ...]
    phases: tuple[Phase, ...]
    findings_s: tuple[float, ...] = ()
    """When the events happened that prove what is broken."""

    @classmethod
    def of(cls, run: RunSeries, findings_s: Sequence[float] = ()) -> Marks:
        return cls(run.duration_s, run.faults, run.phases, tuple(findings_s))

    @property
    def bands(self) -> list[tuple[Fault, float, float]]:
        """Each applied fault with its start and end in seconds; one never healed lasts to the end.

        It starts when it was begun: it is applied once its effect has been measured, a rolling restart when it is over.
        """
        return [
            (
                fault,
                fault.start_s if fault.invoked_s is None else fault.invoked_s,
                self.duration_s if fault.stop_s is None else fault.stop_s,
            )
            for fault in self.faults
            if fault.start_s is not None
        ]

    def colour(self, fault: Fault) -> str:
        """One colour per kind of fault."""
        kinds = list(dict.fromkeys(fault.name for fault in self.faults))
        return FAULT_COLOURS[kinds.index(fault.name) % len(FAULT_COLOURS)]


def with_marks(
    traces: list[dict[str, Any]], layout: dict[str, Any], marks: Marks
) -> dict[str, Any]:
    """Return the figure of these traces with the common time axis and the marks."""
    annotations, lanes = _labels(marks)
    time = {"title": {"text": "seconds since the first event", "font": {"size": 12}, "standoff": 6}}
    axis = {"range": [0, marks.duration_s], "zeroline": False, **time, **layout.get("xaxis", {})}
    margin = {"l": 64, "r": 16, "b": BOTTOM_PX, "t": TOP_PX + LANE_PX * lanes}
    return {
        "data": traces,
        "layout": {
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": "zoom",
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": -LEGEND_PX / (layout["height"] - MARGIN_PX),
                "yanchor": "top",
                "font": {"size": 11},
            },
            **layout,
            "height": layout["height"] + LANE_PX * lanes,
            "xaxis": axis,
            "margin": margin,
            "shapes": _shapes(marks),
            "annotations": annotations,
        },
    }


def timeline(marks: Marks) -> dict[str, Any] | None:
    """The run at a glance: a lane of phases, and one lane per kind of fault."""
    if not marks.phases and not marks.faults:
        return None
    phases = [(phase.name, phase.start_s, phase.stop_s, phase.name) for phase in marks.phases]
    bars = [_bar("phases", phases, "#7b8494", marks, beside="")] if phases else []
    kinds = list(dict.fromkeys(fault.name for fault in marks.faults))
    for kind in kinds:
        own = [item for item in marks.bands if item[0].name == kind]
        spans = [
            (fault.label, start_s, stop_s, ", ".join(fault.targets) or kind)
            for fault, start_s, stop_s in own
        ]
        shade = FAULT_COLOURS[kinds.index(kind) % len(FAULT_COLOURS)]
        bars.append(_bar(kind, spans, shade, marks, beside="outside"))
    skipped = [fault for fault in marks.faults if fault.skipped]
    if skipped:
        bars.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "skipped",
                "x": [fault.invoked_s for fault in skipped],
                "y": [html.escape(fault.name) for fault in skipped],
                "marker": {"symbol": "x-thin-open", "size": 9, "color": "#8b8f98"},
                "hovertext": [html.escape(f"skipped: {fault.skipped}") for fault in skipped],
                "hoverinfo": "text",
            }
        )
    bare = Marks(marks.duration_s, (), marks.phases, marks.findings_s)
    names = [html.escape(name) for name in ("phases", *kinds)]
    axis = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": names[::-1],
        "fixedrange": True,
        "automargin": True,
    }
    layout = {"height": 66 + 30 * len(names), "yaxis": axis, "barmode": "overlay", "bargap": 0.25}
    return with_marks(bars, layout, bare)


def _bar(
    lane: str,
    spans: Sequence[tuple[str, float, float, str]],
    shade: str,
    marks: Marks,
    *,
    beside: str,
) -> dict[str, Any]:
    """Horizontal bars in one lane: (what it is, start, stop, the words inside).

    Words that do not fit inside stand ``beside`` the bar, or nowhere if that is empty.
    """
    scale = PLOT_WIDTH_PX / max(marks.duration_s, 1e-9)
    fits = [(stop - start) * scale > CHARACTER_PX * len(words) for _, start, stop, words in spans]
    words = [
        html.escape(label) if fit or beside else ""
        for (_, _, _, label), fit in zip(spans, fits, strict=True)
    ]
    # A fault may be over in a millisecond: its outline keeps it visible.
    outlines = [
        "rgba(255,255,255,0.6)" if (stop - start) * scale > MIN_BAR_PX else shade
        for _, start, stop, _ in spans
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "name": html.escape(lane),
        "y": [html.escape(lane)] * len(spans),
        "base": [start for _, start, _, _ in spans],
        "x": [stop - start for _, start, stop, _ in spans],
        "text": words,
        "textposition": ["inside" if fit or not beside else beside for fit in fits],
        "insidetextanchor": "middle",
        "constraintext": "none",
        "textangle": 0,
        "textfont": {"size": 10},
        "insidetextfont": {"size": 10, "color": "#ffffff"},
        "hovertext": [
            f"{html.escape(label)}: {start:.3f}–{stop:.3f} s ({stop - start:.3f} s)"
            for label, start, stop, _ in spans
        ],
        "hoverinfo": "text",
        "marker": {"color": shade, "line": {"width": 1.5, "color": outlines}},
    }


def _shapes(marks: Marks) -> list[dict[str, Any]]:
    shapes: list[dict[str, Any]] = [
        {
            "type": "rect",
            "layer": "below",
            "xref": "x",
            "yref": "paper",
            "x0": start_s,
            "x1": stop_s,
            "y0": 0,
            "y1": 1,
            "fillcolor": marks.colour(fault),
            "opacity": 0.16,
            "line": {"width": 1, "color": marks.colour(fault)},
        }
        for fault, start_s, stop_s in marks.bands
    ]
    shapes += [_upright(phase.start_s, "#8b8f98", "dot", 1) for phase in marks.phases]
    shapes += [_upright(at_s, FINDING_COLOUR, "solid", 1.5) for at_s in marks.findings_s]
    return shapes


def _upright(at_s: float, shade: str, dash: str, width: float) -> dict[str, Any]:
    return {
        "type": "line",
        "layer": "above" if dash == "solid" else "below",
        "xref": "x",
        "yref": "paper",
        "x0": at_s,
        "x1": at_s,
        "y0": 0,
        "y1": 1,
        "line": {"color": shade, "width": width, "dash": dash},
    }


def _labels(marks: Marks) -> tuple[list[dict[str, Any]], int]:
    """The names above the bands, and how many lanes they take."""
    free_from = [0.0] * MAX_LANES
    labels = []
    used = 0
    scale = PLOT_WIDTH_PX / max(marks.duration_s, 1e-9)
    for fault, start_s, _ in sorted(marks.bands, key=lambda band: band[1]):
        words = fault.label if len(fault.label) <= MAX_LABEL else f"{fault.label[: MAX_LABEL - 1]}…"
        left = start_s * scale
        # A name near the right edge would leave the page: it ends at the edge instead.
        left = min(left, PLOT_WIDTH_PX - CHARACTER_PX * len(words))
        lane = next((n for n, free in enumerate(free_from) if free <= left), None)
        if lane is None:
            words = f"#{fault.fault_id}"
            left = start_s * scale
            lane = min(range(MAX_LANES), key=free_from.__getitem__)
        free_from[lane] = max(free_from[lane], left + CHARACTER_PX * len(words) + 10)
        used = max(used, lane + 1)
        labels.append(
            {
                "x": left / scale,
                "y": 1,
                "xref": "x",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": LANE_PX * lane,
                "text": html.escape(words),
                "showarrow": False,
                "font": {"size": 10, "color": marks.colour(fault)},
            }
        )
    return labels, used
