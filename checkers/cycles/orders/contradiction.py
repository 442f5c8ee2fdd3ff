"""Why no version order exists: few transactions, and cycles of which every version order has at least one.

Transactions are taken away while the rest still has no order: each one adds constraints only, so what is left proves
the same. Of the cycles of that rest those are kept that together rule out every choice. The verdict does not depend on
any of this; ``MAX_TRIED`` bounds the effort, and the core of a large contradiction may then be larger than needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from pysat.solvers import Solver

from nemesis.checkers.cycles.edges import WW
from nemesis.checkers.cycles.orders.forbidden import Hop, Walk, cycles
from nemesis.checkers.cycles.orders.forcing import FIRST, Choices
from nemesis.checkers.cycles.orders.problem import NIL, Problem
from nemesis.checkers.cycles.orders.search import (
    SOLVER,
    Answer,
    Literal,
    Lookup,
    Proposal,
    decide,
    topological_rank,
)
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers

MAX_TRIED: Final = 30_000
"""Transactions in all problems that are tried."""
MAX_EXPLAINED: Final = 60
"""Transactions of a rest whose cycles are listed."""
CYCLES_PER_ROUND: Final = 20


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one transaction of a cycle comes before the next."""

    source: int
    target: int
    read: int = -1
    """The micro-operation of a read: by the target of the source's write, or by the source of what was replaced."""
    key: int = -1
    """The key of an order that is assumed."""
    before: int = -1
    """Whose write of the key is assumed to come first, −1 if nothing is assumed."""
    is_known: bool = False
    """Whether an option states the order of the versions that both wrote."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Transactions by their numbers in the analysis."""

    txns: tuple[int, ...]
    cycles: tuple[tuple[Reason, ...], ...]
    """Empty if there are too many transactions to list them."""


def contradiction(problem: Problem) -> Contradiction:
    """Return why a problem has no solution."""
    core = problem.among(_smallest(problem))
    walks = _walks(core) if len(core) <= MAX_EXPLAINED else []
    involved = {hop.source for walk, _ in walks for hop in walk} or set(range(len(core)))
    txns = tuple(int(core.txn[txn]) for txn in sorted(involved))
    return Contradiction(txns, tuple(_reasons(core, walk, literals) for walk, literals in walks))


def _smallest(problem: Problem) -> Numbers:
    kept = np.arange(len(problem))
    tried = 0
    size = len(kept) // 2
    while size:
        start = 0
        while start < len(kept):
            rest = np.delete(kept, np.s_[start : start + size])
            tried += len(rest)
            if tried > MAX_TRIED:
                return kept
            if decide(problem.among(rest)).answer is Answer.IMPOSSIBLE:
                kept = rest
            else:
                start += size
        size //= 2
    return kept


_Shown = tuple[Walk, tuple[Literal | None, ...]]


def _walks(problem: Problem) -> list[_Shown]:
    """The cycles of which every order has one."""
    choices = Choices.of(problem)
    rank = topological_rank(choices)
    proposal, lookup = Proposal(choices, rank), Lookup.of(choices)
    listed: list[_Shown] = []
    clauses: list[list[int]] = []
    with Solver(name=SOLVER) as solver:
        while solver.solve():
            proposal.adopt(solver.get_model())
            for walk in cycles(choices.graph_of(proposal.sides), rank, CYCLES_PER_ROUND):
                literals = tuple(lookup.literal(hop, proposal.sides) for hop in walk)
                clause = proposal.clause(walk, lookup)
                listed.append((walk, literals))
                clauses.append(clause)
                solver.add_clause(clause)
                if not clause:
                    return [(walk, literals)]
    return [listed[number] for number in _needed(clauses)]


def _needed(clauses: list[list[int]]) -> list[int]:
    """The numbers of clauses that contradict each other, none of which can be left out."""
    kept = list(range(len(clauses)))
    for number in reversed(range(len(clauses))):
        rest = [other for other in kept if other != number]
        with Solver(name=SOLVER, bootstrap_with=[clauses[other] for other in rest]) as solver:
            if not solver.solve():
                kept = rest
    return kept


def _reasons(
    problem: Problem, walk: Walk, literals: tuple[Literal | None, ...]
) -> tuple[Reason, ...]:
    choices = Choices.of(problem)
    return tuple(
        _reason(choices, hop, literal) for hop, literal in zip(walk, literals, strict=True)
    )


def _reason(choices: Choices, hop: Hop, literal: Literal | None) -> Reason:
    problem = choices.problem
    source, target = int(problem.txn[hop.source]), int(problem.txn[hop.target])
    if literal is None:
        read = _certain_read(problem, hop)
        known = (problem.before == hop.source) & (problem.after == hop.target)
        return Reason(source, target, read=read, is_known=read < 0 and bool(known.any()))
    choice, side = literal
    entry = int(choices.first[choice] if side == FIRST else choices.second[choice])
    writer, key = int(problem.writer[entry]), int(problem.write_key[entry])
    read = -1 if hop.kind == WW else _read(problem, hop.source, key, writer)
    return Reason(source, target, read=read, key=key, before=int(problem.txn[writer]))


def _certain_read(problem: Problem, hop: Hop) -> int:
    """The read that shows an edge without a choice, −1 if the order of sessions or a known one of writers does."""
    if hop.kind == WW:
        shown = (problem.reader == hop.target) & (problem.read_from == hop.source)
    else:
        written = problem.write_key[problem.writer == hop.target]
        shown = (problem.reader == hop.source) & np.isin(problem.read_key, written)
        shown &= (problem.read_from == NIL) | _is_known_before(problem, hop.target)[
            problem.read_from
        ]
    reads = problem.read_micro[shown]
    return int(reads[0]) if len(reads) else -1


def _is_known_before(problem: Problem, txn: int) -> Mask:
    """For each transaction whether the problem states that it comes before one; one entry more, for ``NIL``."""
    is_before = np.zeros(len(problem) + 1, dtype=np.bool_)
    waiting = [txn]
    while waiting:
        more = problem.before[problem.after == waiting.pop()]
        waiting += more[~is_before[more]].tolist()
        is_before[more] = True
    return is_before


def _read(problem: Problem, reader: int, key: int, writer: int) -> int:
    shown = (problem.reader == reader) & (problem.read_key == key) & (problem.read_from == writer)
    return int(problem.read_micro[shown][0])
