"""Which cycles there are: for each level and order those that no smaller one accounts for.

**Dependencies, and the order of processes.** A cycle lies in a strongly connected component. A component of one level
that consists of components of smaller levels or orders, joined where they overlap, and of nothing else, tells nothing
new. Else there is a cycle that leaves the parts, and it needs what the smaller ones have not: the shortest through an
edge between two parts is reported. So one cause is named once, by the smallest of its names.

**Real time.** If a cycle has several edges of real time, then one of these edges leads to a transaction that began
last of all those; the walk from there to the next such edge ends in one that ended before: one edge of real time is
enough to close it. So a cycle with real time is a walk along dependencies to a transaction that had ended before the
walk's first one began, and earliest moments (``candidate_components``), of each level's own graph, find the ends of all
such walks
in linear time. Reported is a shortest walk to each, except from a beginning that is reported already.

Limits: of each name ``MAX_EXPLAINED`` cycles are searched out. A transaction on a cycle of dependencies is not looked
at again for real time at that level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.cycles.candidate_components import suspects
from nemesis.checkers.cycles.edges import PROCESS, REALTIME, RW, WR, Edges
from nemesis.checkers.cycles.models import CYCLE_LEVELS, Level, SessionOrder, cycle_name
from nemesis.checkers.cycles.paths import (
    adjacency,
    earliest_times,
    shortest_cycle,
    shortest_from_later,
)
from nemesis.checkers.cycles.states import States, crossing, join, sizes
from nemesis.checkers.cycles.transactions import Mask, Transactions
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET

MAX_EXPLAINED: Final = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a cycle."""

    source: int
    target: int
    kind: int
    via: int


@dataclass(frozen=True, slots=True)
class Cycle:
    name: str
    steps: tuple[Step, ...]
    """From each transaction to the next; the last leads to the first."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The transactions among which cycles are searched, in the candidate order."""

    number: Numbers
    """What each is called outside."""
    edges: Edges
    """The order of processes included."""
    began: Numbers
    ended: Numbers
    process: Numbers

    def __len__(self) -> int:
        return len(self.number)

    def step(self, edge: int) -> Step:
        edges = self.edges
        return Step(
            int(self.number[edges.source[edge]]),
            int(self.number[edges.target[edge]]),
            int(edges.kind[edge]),
            int(edges.via[edge]),
        )

    def among(self, kept: Mask) -> Graph:
        """The part of these transactions."""
        renumbered = np.cumsum(kept) - 1
        inside = self.edges.where(kept[self.edges.source] & kept[self.edges.target])
        edges = Edges(renumbered[inside.source], renumbered[inside.target], inside.kind, inside.via)
        return Graph(
            self.number[kept], edges, self.began[kept], self.ended[kept], self.process[kept]
        )


def cycles_among(txns: Transactions, edges: Edges, process_order: Edges) -> list[Cycle]:
    """Return the cycles of dependencies, of the order of processes and of real time; they are looked for where there
    can be any.
    """
    tied = process_order.where(txns.ended[process_order.source] >= txns.began[process_order.target])
    suspected = suspects(
        np.concatenate([edges.source, tied.source]),
        np.concatenate([edges.target, tied.target]),
        txns.began,
        txns.ended,
    )
    if not suspected.any():
        return []
    among = [
        part.where(suspected[part.source] & suspected[part.target])
        for part in (edges, process_order)
    ]
    graph = Graph(
        number=np.arange(len(txns)),
        edges=Edges.joined(among),
        began=txns.began,
        ended=txns.ended,
        process=txns.process,
    )
    return list(cycles(graph.among(suspected)))


def cycles(graph: Graph) -> Iterator[Cycle]:
    """Yield the cycles of a graph, the smallest levels and orders first."""
    if not len(graph):
        return
    everything = States.of(len(graph), graph.edges, Level.SERIAL, SessionOrder.PROCESS)
    component = everything.components()
    if (sizes(component) > 1).any():
        yield from _of_dependencies(graph.among(sizes(component) > 1))
    yield from _of_real_time(graph)


def _of_dependencies(graph: Graph) -> Iterator[Cycle]:
    parts: dict[tuple[Level, SessionOrder], Numbers] = {}
    alone = np.arange(len(graph))
    for session_order in (SessionOrder.NONE, SessionOrder.PROCESS):
        below = alone
        for level in CYCLE_LEVELS:
            states = States.of(len(graph), graph.edges, level, session_order)
            component = states.components()
            beside = parts[level, SessionOrder.NONE] if session_order else alone
            joined = join(len(graph), below, beside)
            below = parts[level, session_order] = states.partition(component)
            leaving = np.flatnonzero(crossing(states, component, joined))
            for starts in _by_component(component[states.source[leaving]], leaving):
                yield _shortest(graph, states, component, starts)


def _by_component(component: Numbers, edge: Numbers) -> list[Numbers]:
    """The edges of each component, of the first ``MAX_EXPLAINED`` components."""
    if not len(edge):
        return []
    _, first, number = np.unique(component, return_index=True, return_inverse=True)
    component = first[number]  # by the first of its edges, however components are numbered
    by = np.argsort(component, kind="stable")
    cuts = np.flatnonzero(np.diff(component[by])) + 1
    return np.split(edge[by], cuts)[:MAX_EXPLAINED]


def _shortest(graph: Graph, states: States, component: Numbers, starts: Numbers) -> Cycle:
    """The shortest cycle through one of these edges; with a single anti-dependency, if there is such a one."""
    span = np.abs(states.source[starts] - states.target[starts]) % states.transactions
    starts = starts[np.argsort(span, kind="stable")]
    within = component[states.source] == component[states.target]
    kinds = graph.edges.kind[states.edge]
    rw_starts = starts[kinds[starts] == RW]
    walk = np.zeros(0, dtype=np.int64)
    if states.size > states.transactions and len(rw_starts):
        walk = shortest_cycle(
            states.size, states.source, states.target, rw_starts, within & (kinds != RW)
        )
    if not len(walk):
        walk = shortest_cycle(states.size, states.source, states.target, starts, within)
    steps = tuple(graph.step(edge) for edge in states.edge[walk].tolist())
    return _named(steps)


def _named(steps: tuple[Step, ...]) -> Cycle:
    """The cycle of these steps by its name, from its first transaction on."""
    first = min(range(len(steps)), key=lambda number: steps[number].source)
    steps = steps[first:] + steps[:first]
    kinds = [step.kind for step in steps]
    adjacent = any(a == b == RW for a, b in zip(kinds, kinds[1:] + kinds[:1], strict=True))
    if REALTIME in kinds:
        session_order = SessionOrder.REALTIME
    elif PROCESS in kinds:
        session_order = SessionOrder.PROCESS
    else:
        session_order = SessionOrder.NONE
    name = cycle_name(
        kinds.count(RW), wr=WR in kinds, adjacent=adjacent, session_order=session_order
    )
    return Cycle(name, steps)


def _of_real_time(graph: Graph) -> Iterator[Cycle]:
    known = np.zeros(len(graph), dtype=np.bool_)
    for level in CYCLE_LEVELS:
        states = States.of(len(graph), graph.edges, level, SessionOrder.NONE)
        component = states.components()
        earliest = _earliest(graph, states, component)
        is_cyclic = _any_state(sizes(component) > 1, len(graph))
        at_fault: Mask = (earliest > graph.ended) & ~known & ~is_cyclic
        yield from _late_walks(graph, states, np.flatnonzero(at_fault))
        known = known | at_fault


def _earliest(graph: Graph, states: States, component: Numbers) -> Numbers:
    """For each transaction its earliest time in the graph of a level."""
    own = np.full(states.size, UNSET, dtype=np.int64)
    own[: len(graph)] = graph.began
    count = int(component.max()) + 1
    of_component = np.full(count, UNSET, dtype=np.int64)
    np.maximum.at(of_component, component, own)
    source, target = component[states.source], component[states.target]
    between = source != target
    earliest, _ = earliest_times(count, source[between], target[between], of_component)
    times = earliest[component].reshape(-1, len(graph))
    by_transaction: Numbers = times.max(axis=0)
    return by_transaction


def _any_state(mask: Mask, transactions: int) -> Mask:
    return np.asarray(mask.reshape(-1, transactions).any(axis=0), dtype=np.bool_)


def _late_walks(graph: Graph, states: States, at_fault: Numbers) -> Iterator[Cycle]:
    """A shortest cycle with real time through each of these transactions, one for each beginning of a walk."""
    if not len(at_fault):
        return
    first, edge = adjacency(states.size, states.target)
    begun: set[int] = set()
    for last in at_fault[:MAX_EXPLAINED].tolist():
        walk = shortest_from_later(
            first,
            edge,
            states.source,
            states.target,
            np.arange(last, states.size, len(graph)),
            graph.began,
            int(graph.ended[last]),
            graph.process,
            int(graph.process[last]),
        )
        if not len(walk) or int(states.source[walk[0]]) in begun:
            continue
        begin = int(states.source[walk[0]])
        begun.add(begin)
        back = Step(int(graph.number[last]), int(graph.number[begin]), REALTIME, -1)
        steps = tuple(graph.step(edge) for edge in states.edge[walk].tolist())
        yield _named((*steps, back))
