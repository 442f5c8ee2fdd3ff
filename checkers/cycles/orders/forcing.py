"""Choices that reachability decides, to a fixpoint.

A side of a choice whose edges close a forbidden cycle with what is certain is impossible, so the other side is
certain, and its edges may decide further choices. For serializability this is: W2 →* R, where R read W1's value, gives
W2 before W1; W1 →* W2 gives R before W2. If both sides are impossible, no order exists. Each step adds edges that every
allowed order has, so what follows holds for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nemesis.checkers.cycles.models import Level
from nemesis.checkers.cycles.orders.bits import (
    Bits,
    add,
    closed,
    draw,
    empty,
    force,
    has,
    session_order,
)
from nemesis.checkers.cycles.orders.forbidden import Closing, Graph
from nemesis.checkers.cycles.orders.problem import NIL, Problem
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers

FIRST, SECOND = 1, 2
"""Which writer of a choice comes first."""
Sides = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(slots=True)
class Choices:
    """What is certain, and the choices, with what is decided of them."""

    problem: Problem
    graph: Graph
    """What is certain; grows."""
    readers: Bits
    """For each entry of ``problem.writer`` the other transactions that read its version."""
    first: Numbers
    """Of each choice an entry of ``problem.writer``."""
    second: Numbers
    decided: Sides
    """0 while a choice is open."""
    is_impossible: bool = field(default=False)
    """Whether what is certain has a forbidden cycle, or a choice has no possible side."""

    @classmethod
    def of(cls, problem: Problem) -> Choices:
        count = len(problem)
        plain = session_order(problem.session_order, problem.process, problem.began, problem.ended)
        rw = empty(count, count)
        known = problem.read_from != NIL
        add(plain, problem.read_from[known], problem.reader[known])
        visible = plain.copy()
        add(plain, problem.before, problem.after)
        _add_nil(problem, rw)
        readers = _readers(problem)
        first, second = _pairs(problem, readers)
        decided = _known_sides(problem, first, second)
        graph = Graph(problem.level, plain, rw, visible)
        choices = cls(problem, graph, readers, first, second, decided)
        choices._draw(decided, graph)
        return choices

    def force(self) -> None:
        """Decide what reachability decides."""
        while not self.is_impossible:
            closing = Closing.of(self.graph)
            if closing.is_cyclic:
                self.is_impossible = True
                return
            count, impossible = force(
                self.first,
                self.second,
                self.decided,
                self.problem.writer,
                self.readers,
                closing.ww,
                closing.rw,
            )
            self.is_impossible = impossible >= 0
            if not count:
                return
            self._draw(self.decided, self.graph)

    def graph_of(self, sides: Sides) -> Graph:
        """Return the dependencies if each choice has the side of ``sides``."""
        certain = self.graph
        graph = Graph(certain.level, certain.plain.copy(), certain.rw.copy(), certain.visible)
        self._draw(sides, graph)
        return graph

    def _draw(self, sides: Sides, graph: Graph) -> None:
        draw(
            self.first,
            self.second,
            sides,
            self.problem.writer,
            self.readers,
            graph.plain,
            graph.rw,
        )


def _add_nil(problem: Problem, rw: Bits) -> None:
    """Who read the initial version comes before all who wrote the key."""
    for read in np.flatnonzero(problem.read_from == NIL).tolist():
        after = problem.writer[problem.write_key == problem.read_key[read]]
        after = after[after != problem.reader[read]]
        add(rw, np.full(len(after), problem.reader[read]), after)


def _readers(problem: Problem) -> Bits:
    bits = empty(len(problem.writer), len(problem))
    keys = problem.keys
    entry_of = problem.writer * keys + problem.write_key
    by = np.argsort(entry_of, kind="stable")
    wanted = problem.read_from * keys + problem.read_key
    position: Numbers = np.searchsorted(entry_of[by], wanted)
    known = (problem.read_from != NIL) & (position < len(by))
    entry = by[position[known]]
    known[known] = entry_of[entry] == wanted[known]
    entry = by[position[known]]
    add(bits, entry, problem.reader[known])
    return bits


def _pairs(problem: Problem, readers: Bits) -> tuple[Numbers, Numbers]:
    """The choices: pairs of writers of a key, of which the order matters."""
    is_read: Mask = np.asarray(readers.any(axis=1), dtype=np.bool_)
    by_key = np.argsort(problem.write_key, kind="stable")
    cuts = np.flatnonzero(np.diff(problem.write_key[by_key])) + 1
    first, second = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for entries in np.split(by_key, cuts):
        a, b = np.triu_indices(len(entries), k=1)
        a, b = entries[a], entries[b]
        if not problem.orders_unread:
            matters = is_read[a] | is_read[b]
            a, b = a[matters], b[matters]
        first.append(a)
        second.append(b)
    return np.concatenate(first), np.concatenate(second)


def _known_sides(problem: Problem, first: Numbers, second: Numbers) -> Sides:
    """The choices of writers of which the problem states the order, or that of others between them."""
    decided = np.zeros(len(first), dtype=np.int8)
    if len(problem.before):
        known = empty(len(problem), len(problem))
        add(known, problem.before, problem.after)
        known = closed(known)
        a, b = problem.writer[first], problem.writer[second]
        decided[has(known, a, b)] = FIRST
        decided[has(known, b, a)] = SECOND
    return decided


def is_polynomial(level: Level) -> bool:
    """Whether forcing decides everything: an order of what is certain then decides each open choice."""
    return level in (Level.READ_ATOMIC, Level.CAUSAL)
