"""Which edges close a forbidden cycle in a graph, by level; and such cycles themselves.

Each level of ``problem``'s table is a set of closed walks. ``Closing`` states for each level which further ww or rw
closes one: ww a → b does if b leads to a, and rw r → b does if b leads to r, by a walk that the level allows the rest
of the cycle to be:

| level | the rest after ww | the rest after rw |
|---|---|---|
| read atomic | ww, wr, order | one wr, or one step of the order |
| causal | ww, wr, order | wr and order |
| parallel snapshot | ww, wr, order, at most one rw | ww, wr, order |
| snapshot | no two rw adjacent | the same, neither beginning nor ending with rw |
| serializable | anything | anything |

A cycle with an rw is forbidden under the first two levels by its rest after that rw alone: so
there an rw is never part of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nemesis.checkers.cycles.edges import RW, WW
from nemesis.checkers.cycles.models import Level
from nemesis.checkers.cycles.orders.bits import (
    Bits,
    closed,
    closed_states,
    has,
    members,
    parallel_states,
    path,
    reaches_itself,
    snapshot_states,
)
from nemesis.checkers.framework.arrays import Numbers

TWO_STATES = (Level.PARALLEL_SNAPSHOT, Level.SNAPSHOT)


class Hop(NamedTuple):
    """One edge of a cycle, ``RW``, or ``WW`` for every other kind."""

    source: int
    target: int
    kind: int


Walk = tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Dependencies under some version orders."""

    level: Level
    plain: Bits
    """ww, wr, and the order of sessions."""
    rw: Bits
    visible: Bits
    """wr, and the order of sessions."""

    def __len__(self) -> int:
        return len(self.plain)


@dataclass(frozen=True, slots=True)
class Closing:
    """For each transaction b the a of which ww a → b, and the r of which rw r → b closes a forbidden cycle."""

    ww: Bits
    rw: Bits
    is_cyclic: bool
    """Whether the graph has a forbidden cycle already."""

    @classmethod
    def of(cls, graph: Graph) -> Closing:
        level, count = graph.level, len(graph)
        if level is Level.SERIAL:
            reach = closed(graph.plain | graph.rw)
            return cls(reach, reach, reaches_itself(reach))
        if level in TWO_STATES:
            return cls._of_states(graph, closed_states(_states(graph), count))
        plain = closed(graph.plain)
        visible = graph.visible if level is Level.READ_ATOMIC else closed(graph.visible)
        return cls(plain, visible, reaches_itself(plain) or _meets(graph.rw, visible))

    @classmethod
    def _of_states(cls, graph: Graph, reach: Bits) -> Closing:
        count, words = graph.plain.shape
        low, high = reach[:count, :words], reach[:count, words:]
        ww = low | high
        if graph.level is Level.PARALLEL_SNAPSHOT:
            return cls(ww, low, reaches_itself(ww))
        rw = reach[count:, :words]
        is_cyclic = reaches_itself(low) or reaches_itself(reach[count:, words:])
        return cls(ww, rw, is_cyclic)


def cycles(graph: Graph, rank: Numbers, most: int) -> Iterator[Walk]:
    """Yield forbidden cycles, up to about ``most``; none only if the graph has none.

    Each closed walk has an edge against ``rank``, any total order. Under the levels without rw in the rest of a cycle
    each of its rw is looked at.
    """
    closing = Closing.of(graph)
    if not closing.is_cyclic:
        return
    states = _states(graph) if graph.level in TWO_STATES else graph.plain
    if graph.level is Level.SERIAL:
        states = graph.plain | graph.rw
    for source, target in _spread(_closing_edges(graph.plain, closing.ww, rank), most):
        yield _rest(graph, states, source, target, WW)
    against = rank if graph.level >= Level.PARALLEL_SNAPSHOT else None
    for source, target in _spread(_closing_edges(graph.rw, closing.rw, against), most):
        yield _rest(graph, states, source, target, RW)


def _states(graph: Graph) -> Bits:
    if graph.level is Level.SNAPSHOT:
        return snapshot_states(graph.plain, graph.rw)
    return parallel_states(graph.plain, graph.rw)


def _meets(rw: Bits, rest: Bits) -> bool:
    """Whether some rw has a rest that makes it a forbidden cycle."""
    return bool(len(_closing_edges(rw, rest, None)))


def _closing_edges(edges: Bits, closing: Bits, rank: Numbers | None) -> Numbers:
    """The edges that are part of a forbidden cycle, against the rank if there is one, as rows of (source, target)."""
    source, target = _listed(edges)
    if rank is not None:
        against = rank[source] > rank[target]
        source, target = source[against], target[against]
    chosen = has(closing, target, source) & (source != target)
    return np.stack([source[chosen], target[chosen]], axis=1)


def _listed(edges: Bits) -> tuple[Numbers, Numbers]:
    unpacked = np.unpackbits(edges.view(np.uint8), axis=1, bitorder="little")
    source, target = np.nonzero(unpacked)
    return source, target


def _spread(edges: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Some of the edges, evenly."""
    step = max(1, len(edges) // most)
    yield from map(tuple, edges[::step].tolist())


def _rest(graph: Graph, states: Bits, source: int, target: int, kind: int) -> Walk:
    """The shortest forbidden cycle through an edge that is part of one."""
    count, words = graph.plain.shape
    closing = Hop(source, target, kind)
    if graph.level in TWO_STATES:
        start, goals = target, [source, count + source]
        if kind == RW:
            goals = [source]
            if graph.level is Level.SNAPSHOT:
                start = count + target
        nodes = path(states, np.array([start]), np.array(goals), count, count, 64 * words)
        hops = [
            Hop(a % count, b % count, RW if b >= count and (a < count) else WW)
            for a, b in zip(nodes[:-1].tolist(), nodes[1:].tolist(), strict=True)
        ]
        return (closing, *hops)
    if graph.level is not Level.SERIAL and kind == RW:
        states = graph.visible
    nodes = path(states, np.array([target]), np.array([source]), count, 0, 0)
    return (closing, *_hops(graph, nodes))


def _hops(graph: Graph, nodes: Numbers) -> Iterator[Hop]:
    a, b = nodes[:-1], nodes[1:]
    is_plain = has(graph.plain, a, b)
    for source, target, plain in zip(a.tolist(), b.tolist(), is_plain.tolist(), strict=True):
        yield Hop(source, target, WW if plain else RW)


__all__ = ["Closing", "Graph", "Hop", "Walk", "cycles", "members"]
