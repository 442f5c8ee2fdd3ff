"""What a chart consists of: panels above each other on one time axis, each with layers and notes.

``templates/chart.html`` turns them into markup; nothing here knows of HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nemesis.reports.charts.paths import HEIGHT
from nemesis.reports.charts.scale import Scale

PALETTE: Final = (
    *("#3b82c4", "#e08a1e", "#2f9e66", "#c2497c", "#7a5cc0", "#0f9aa8", "#9a7b3c", "#8b8f98"),
)


def colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


@dataclass(frozen=True, slots=True)
class Layer:
    """A path with one look."""

    path: str
    shade: str
    look: str = "line"
    """A class of ``chart.css``: ``line``, ``dots``, ``fill``, ``band``."""
    width: float = 1.6
    """Of lines, in pixels."""
    dash: str = ""
    title: str = ""
    """What a tooltip says."""
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Note:
    """A text in a panel; it takes the room from ``start_s`` to ``stop_s`` and is cut there."""

    start_s: float
    stop_s: float
    top: float
    """Share of the height, from the top."""
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a chart with an axis of its own: a scale, or lanes with names."""

    caption: str
    height_px: int
    layers: tuple[Layer, ...]
    scale: Scale | None = None
    lanes: tuple[str, ...] = ()
    """Names from top to bottom."""
    notes: tuple[Note, ...] = ()

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(share of the height from the top, label)."""
        if self.scale is None:
            return [
                ((number + 0.5) / len(self.lanes), name) for number, name in enumerate(self.lanes)
            ]
        most = max(2, self.height_px // 24)
        return [(1.0 - share, label) for share, label in self.scale.ticks(most)]

    @property
    def has_rules(self) -> bool:
        """Whether ticks are drawn across."""
        return self.scale is not None


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend."""

    name: str
    shade: str
    look: str = "line"
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    label: str
    """What it shows, for those who do not see it."""
    panels: tuple[Panel, ...]
    keys: tuple[Key, ...] = ()


def chart(label: str, panels: Iterable[Panel | None], keys: Sequence[Key] = ()) -> Chart:
    """Return the chart of the panels that there are."""
    return Chart(label, tuple(panel for panel in panels if panel is not None), tuple(keys))


def lane_height(number: int, count: int) -> int:
    """Return the row of the box in the middle of a lane."""
    return round((number + 0.5) / count * HEIGHT)


def keys_of(layers: Iterable[tuple[str, Layer]]) -> list[Key]:
    """Return a legend for named layers."""
    return [Key(name, layer.shade, layer.look, layer.dash) for name, layer in layers]
