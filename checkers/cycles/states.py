"""The graph that belongs to a level of anomalies, and its strongly connected components.

For three of the four levels its states are the transactions. For the level of snapshot isolation a cycle must not have
two anti-dependencies one after the other, so there are two states of each transaction: reached by an anti-dependency,
which no other one may leave, or by anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.edges import PROCESS, RW, WR, WW, Edges
from nemesis.checkers.cycles.models import Level, SessionOrder
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.components import components as components_of

KINDS = {
    Level.G0: (WW,),
    Level.G1: (WW, WR),
    Level.SNAPSHOT: (WW, WR, RW),
    Level.SERIAL: (WW, WR, RW),
}


@dataclass(frozen=True, slots=True)
class States:
    """A graph of states; state ``s`` is of transaction ``s % transactions``, and of the second kind from there on."""

    transactions: int
    size: int
    source: Numbers
    target: Numbers
    edge: Numbers
    """For each edge of this graph the one of the transactions that it stands for."""

    @classmethod
    def of(cls, count: int, edges: Edges, level: Level, session_order: SessionOrder) -> States:
        """The graph of this level over ``count`` transactions; with the order of processes unless it is ``NONE``."""
        allowed = np.isin(edges.kind, KINDS[level])
        if session_order is not SessionOrder.NONE:
            allowed |= edges.kind == PROCESS
        edge = np.flatnonzero(allowed)
        source, target = edges.source[edge], edges.target[edge]
        if level is not Level.SNAPSHOT:
            return cls(count, count, source, target, edge)
        is_rw = edges.kind[edge] == RW
        plain = ~is_rw
        return cls(
            transactions=count,
            size=2 * count,
            source=np.concatenate([source, source[plain] + count]),
            target=np.concatenate([target + count * is_rw, target[plain]]),
            edge=np.concatenate([edge, edge[plain]]),
        )

    def components(self) -> Numbers:
        """Return the number of each state's strongly connected component."""
        return components_of(self.size, self.source, self.target, is_strong=True)

    def partition(self, component: Numbers) -> Numbers:
        """Return for each transaction a number, equal for those that components join."""
        if self.size == self.transactions:
            return component
        state = np.arange(self.size)
        number = self.transactions + component
        joined = components_of(
            self.transactions + self.size, state % self.transactions, number, is_strong=False
        )
        return joined[: self.transactions]


def join(count: int, a: Numbers, b: Numbers) -> Numbers:
    """Return the finest partition of ``count`` things that both partitions refine."""
    a = np.unique(a, return_inverse=True)[1]
    b = np.unique(b, return_inverse=True)[1]
    thing = np.arange(count)
    source, target = np.concatenate([thing, thing]), np.concatenate([count + a, 2 * count + b])
    return components_of(3 * count, source, target, is_strong=False)[:count]


def sizes(component: Numbers) -> Numbers:
    """Return for each state how many its component has."""
    counted: Numbers = np.bincount(component)[component] if len(component) else component
    return counted


def crossing(states: States, component: Numbers, joined: Numbers) -> Mask:
    """Return for each edge whether it lies in a component and leads from one class of ``joined`` to another."""
    inside = component[states.source] == component[states.target]
    node = states.transactions
    leaves: Mask = joined[states.source % node] != joined[states.target % node]
    crosses: Mask = inside & leaves
    return crosses
