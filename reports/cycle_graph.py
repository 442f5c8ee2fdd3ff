"""A cycle of transactions as a graph: a node for each transaction, an arrow for each reason why one precedes the next.

The finding of a cycle has a step for each arrow, ``T1 comes before T2: …``, in the order of the cycle.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, pi, sin
from typing import Final

from nemesis.checkers.framework.model import Finding

MAX_NODES: Final = 8
RADIUS_PX: Final = 110
NODE_PX: Final = 26
WIDTH_PX: Final = 360
MARGIN_PX: Final = 44
_STEP: Final = re.compile(r"(\S+) comes before (\S+): ")


def cycle_graph(finding: Finding) -> str | None:
    """Return the graph as an ``<svg>`` element; ``None`` if the finding is not a cycle, or too large to be drawn."""
    names = cycle_of(finding.steps)
    if not 2 <= len(names) <= MAX_NODES:
        return None
    positions = [_position(number, len(names)) for number in range(len(names))]
    drawn = "".join([*_arrows(positions), *_nodes(positions, names)])
    height = 2 * (RADIUS_PX + MARGIN_PX)
    label = html.escape(f"Cycle: {', '.join([*names, names[0]])}")
    size = f'viewBox="0 0 {WIDTH_PX} {height}" width="{WIDTH_PX}" height="{height}"'
    return f'<svg class="cycle" role="img" aria-label="{label}" {size}>{drawn}</svg>'


def cycle_of(steps: Sequence[str]) -> list[str]:
    """Return the names of the transactions in the order of their cycle; nothing if the steps are not a cycle."""
    matches = [match for step in steps if (match := _STEP.match(step))]
    sources, targets = [match[1] for match in matches], [match[2] for match in matches]
    is_cycle = len(set(sources)) == len(sources) and targets == [*sources[1:], *sources[:1]]
    return sources if is_cycle else []


def _position(number: int, count: int) -> tuple[float, float]:
    angle = 2 * pi * number / count - pi / 2
    return WIDTH_PX / 2 + RADIUS_PX * cos(angle), RADIUS_PX + MARGIN_PX + RADIUS_PX * sin(angle)


def _nodes(positions: list[tuple[float, float]], names: Sequence[str]) -> Iterator[str]:
    for (x, y), name in zip(positions, names, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE_PX}"/>'
        yield f'<text x="{x:.1f}" y="{y + 4:.1f}">{html.escape(name)}</text>'


def _arrows(positions: list[tuple[float, float]]) -> Iterator[str]:
    """Arrows bent outwards, so that the two of a pair do not lie on each other; each has the number of its step."""
    for number, (begin, end) in enumerate(pairwise([*positions, positions[0]]), start=1):
        (x1, y1), (x2, y2) = begin, end
        length = max(1.0, ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5)
        across = ((y2 - y1) / length, (x1 - x2) / length)
        bend = length * 0.22
        middle = (x1 + x2) / 2 + across[0] * bend, (y1 + y2) / 2 + across[1] * bend
        start, stop = _towards(begin, middle), _towards(end, middle, NODE_PX + 4)
        curve = f"M{_point(start)}Q{_point(middle)} {_point(stop)}"
        yield f'<path class="edge" d="{curve}"/>'
        yield f'<path class="head" d="{_head(middle, stop)}"/>'
        x, y = (x1 + x2) / 2 + across[0] * (bend + 16), (y1 + y2) / 2 + across[1] * (bend + 16)
        yield f'<text class="step" x="{x:.1f}" y="{y + 4:.1f}">{number}</text>'


def _point(position: tuple[float, float]) -> str:
    return f"{position[0]:.1f} {position[1]:.1f}"


def _towards(
    point: tuple[float, float], target: tuple[float, float], distance: float = NODE_PX
) -> tuple[float, float]:
    """Return the point that lies this far from a point, in the direction of the target."""
    dx, dy = target[0] - point[0], target[1] - point[1]
    length = max(1.0, (dx * dx + dy * dy) ** 0.5)
    return point[0] + dx / length * distance, point[1] + dy / length * distance


def _head(middle: tuple[float, float], tip: tuple[float, float]) -> str:
    base = _towards(tip, middle, 9)
    dx, dy = (tip[0] - base[0]) / 9, (tip[1] - base[1]) / 9
    left, right = (base[0] - 4 * dy, base[1] + 4 * dx), (base[0] + 4 * dy, base[1] - 4 * dx)
    return f"M{tip[0]:.1f} {tip[1]:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z"
