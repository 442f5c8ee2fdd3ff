"""Whether a forbidden cycle exists under every version order, for registers and for lists.

The cycles that are certain have been searched for by name before. If one of them is forbidden nothing is left to
decide. Of read committed nothing is left either: what is certain has no cycle, so a topological order of it orders
all versions without one.

Lists show all version orders that matter. For them a cycle has to be looked for only under the models whose cycles
have no name of their own, or one that the search by name may pass over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.cycles.edges import PROCESS, REALTIME, RW, WR, WW, Edges
from nemesis.checkers.cycles.key_orders import Contradicted
from nemesis.checkers.cycles.models import Level, Model
from nemesis.checkers.cycles.orders.bits import Bits, add, empty, session_order
from nemesis.checkers.cycles.orders.contradiction import Contradiction, contradiction
from nemesis.checkers.cycles.orders.forbidden import Graph, Hop, cycles
from nemesis.checkers.cycles.orders.problem import Problem
from nemesis.checkers.cycles.orders.search import MAX_TRANSACTIONS, Answer, decide, too_many
from nemesis.checkers.cycles.orders.witness import has_serial_order
from nemesis.checkers.cycles.search import Step
from nemesis.checkers.cycles.transactions import Mask, Transactions
from nemesis.checkers.framework.arrays import Numbers

NOT_BY_NAME: Final = (Level.READ_ATOMIC, Level.CAUSAL, Level.PARALLEL_SNAPSHOT)


@dataclass(frozen=True, slots=True)
class CycleExists:
    """A forbidden cycle exists; or it may, and a bound ended the search."""

    contradiction: Contradiction | None = None
    """Of registers."""
    steps: tuple[Step, ...] = ()
    """Of lists: the cycle."""
    contradicted: Contradicted | None = None
    """Of a key: no version order keeps what an option states."""
    bound: str = ""
    """Which bound ended the search; empty: a cycle exists."""


def of_registers(problem: Problem) -> CycleExists | None:
    """Return why some forbidden cycle exists, or may; ``None`` if the history keeps the model."""
    if problem.level <= Level.G1 or has_serial_order(problem):
        return None
    decision = decide(problem)
    if decision.answer is Answer.EXISTS:
        return None
    if decision.answer is Answer.UNDECIDED:
        return CycleExists(bound=decision.bound)
    return CycleExists(contradiction(problem))


def of_lists(txns: Transactions, committed: Mask, edges: Edges, model: Model) -> CycleExists | None:
    """As ``of_registers``; ``edges`` are all dependencies."""
    if model.level not in NOT_BY_NAME:
        return None
    among = np.flatnonzero(committed)
    if len(among) > MAX_TRANSACTIONS:
        return CycleExists(bound=too_many(len(among)))
    number = np.full(len(txns), -1, dtype=np.int64)
    number[among] = np.arange(len(among))
    inside = edges.where((number[edges.source] >= 0) & (number[edges.target] >= 0))
    inside = Edges(number[inside.source], number[inside.target], inside.kind, inside.via)
    graph = _graph(txns, among, inside, model)
    rank = np.arange(len(among))
    walk = next(iter(cycles(graph, rank, 1)), None)
    if walk is None:
        return None
    return CycleExists(steps=tuple(_step(hop, inside, txns, among) for hop in walk))


def _graph(txns: Transactions, among: Numbers, edges: Edges, model: Model) -> Graph:
    kept = session_order(
        model.session_order, txns.process[among], txns.began[among], txns.ended[among]
    )
    visible = kept | _bits(edges, WR, len(among))
    return Graph(
        model.level, visible | _bits(edges, WW, len(among)), _bits(edges, RW, len(among)), visible
    )


def _bits(edges: Edges, kind: int, count: int) -> Bits:
    bits = empty(count, count)
    chosen = edges.where(edges.kind == kind)
    add(bits, chosen.source, chosen.target)
    return bits


def _step(hop: Hop, edges: Edges, txns: Transactions, among: Numbers) -> Step:
    """The edge of the transactions that a hop stands for."""
    source, target = int(among[hop.source]), int(among[hop.target])
    between = np.flatnonzero((edges.source == hop.source) & (edges.target == hop.target))
    for kind in (RW,) if hop.kind == RW else (WR, WW):
        shown = between[edges.kind[between] == kind]
        if len(shown):
            return Step(source, target, kind, int(edges.via[shown[0]]))
    is_of_process = txns.process[source] == txns.process[target]
    return Step(source, target, PROCESS if is_of_process else REALTIME, -1)
