"""Whether a forbidden cycle exists under every version order, for registers and for lists.

The cycles that are certain have been searched for by name before. If one of them is forbidden nothing is left to
decide. Of read committed nothing is left either: what is certain has no cycle, so a topological order of it orders
all versions without one. Nor is anything left of lists that have to be serializable.

Lists show the order of all versions that were read. Two things are left under the models between these:

* what is named is a cycle through the version after the one that was read. A cycle may be forbidden because a reader
  missed a later version, whose writer it depends on by fewer steps;
* under both snapshot isolations one of two appends comes first, although no transaction read either.

If the appends that no transaction read have an order in which no cycle by name is forbidden under snapshot isolation,
nothing is left. The order in which they appear is tried. Else the transactions that can be on a cycle are searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.cycles.candidate_components import suspects
from nemesis.checkers.cycles.edges import WW, Edges
from nemesis.checkers.cycles.guarantees import GuaranteeBroken
from nemesis.checkers.cycles.key_orders import Contradicted
from nemesis.checkers.cycles.models import ANOMALIES, Level, Model
from nemesis.checkers.cycles.orders.contradiction import Contradiction, contradiction
from nemesis.checkers.cycles.orders.problem import NIL, Problem
from nemesis.checkers.cycles.orders.search import Answer, decide
from nemesis.checkers.cycles.orders.witness import has_serial_order
from nemesis.checkers.cycles.process_order import process_edges
from nemesis.checkers.cycles.search import Cycle, cycles_among
from nemesis.checkers.cycles.skipped_appends import SkippedAppend
from nemesis.checkers.cycles.transactions import Transactions

NOT_BY_NAME: Final = (
    Level.READ_ATOMIC,
    Level.CAUSAL,
    Level.PARALLEL_SNAPSHOT,
    Level.SNAPSHOT,
)
"""Levels that forbid cycles of lists which have no name."""


@dataclass(frozen=True, slots=True)
class CycleExists:
    """A forbidden cycle exists; or it is undecided whether one does."""

    contradiction: Contradiction | None = None
    contradicted: Contradicted | None = None
    """Of a key: no version order keeps what an option states."""
    skipped: SkippedAppend | None = None
    """Of lists: a read that missed a part of a transaction, and returned another one."""
    guarantee: GuaranteeBroken | None = None
    """Why no execution keeps the guarantee of the model."""
    certain: Cycle | None = None
    """A cycle that every version order has, whose name is not judged."""
    bound: str = ""
    """Why it is undecided, such as the bound that ended the search; empty: a cycle exists."""


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


def of_lists(
    txns: Transactions, edges: Edges, unread: Edges, problem: Problem
) -> CycleExists | None:
    """As ``of_registers``; ``edges`` are all dependencies that the lists show.

    ``unread``: one order of the appends that no transaction read (``list_edges.unread_edges``).
    """
    if problem.level not in NOT_BY_NAME:
        return None
    guessed = unread if problem.orders_unread else unread.where(np.zeros(len(unread), np.bool_))
    in_order = Edges.joined([edges, guessed])
    committed = np.zeros(len(txns), dtype=np.bool_)
    committed[problem.txn] = True
    sessions = process_edges(txns, committed)
    snapshot = Model("", Level.SNAPSHOT, problem.session_order)
    cycles = cycles_among(txns, in_order, sessions)
    if not any(snapshot.forbids(ANOMALIES[cycle.name]) for cycle in cycles):
        return None
    ww = edges.where(edges.kind == WW)
    either_way = Edges.joined([in_order, guessed.reversed(), sessions])
    return of_registers(_on_cycles(problem.with_ordered(ww.source, ww.target), either_way, txns))


def _on_cycles(problem: Problem, edges: Edges, txns: Transactions) -> Problem:
    """Return the problem of those that can be on a cycle of these edges, and of those whose versions they read.

    In every order of versions a cycle is one of these edges and of real time: a reader of a version comes before
    each later one by the rw to the next version and by ww.
    """
    suspected = suspects(edges.source, edges.target, txns.began, txns.ended)[problem.txn]
    read_from = problem.read_from[suspected[problem.reader] & (problem.read_from != NIL)]
    suspected[read_from] = True
    return problem.among(np.flatnonzero(suspected))
