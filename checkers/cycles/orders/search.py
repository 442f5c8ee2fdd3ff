"""What reachability leaves open: a solver proposes version orders, and each cycle is a lesson.

1. Each open choice follows a total order of the transactions, unless the solver has decided it.
2. The graph of these choices has no forbidden cycle: an order exists, and the choices are the proof.
3. Else each cycle gives a clause: not all the choices on it together. Every allowed order satisfies it, because the
   cycle is forbidden. A choice becomes a variable of the solver when a clause names it.
4. The solver decides all its variables, or shows that the clauses contradict each other: then no order exists.

Each round adds a clause that the last proposal violates, and there are finitely many: the search ends. It stops before
at ``MAX_CLAUSES``, or when the solver has met ``MAX_CONFLICTS`` conflicts; more than ``MAX_TRANSACTIONS`` it does not
begin. Then the answer is ``UNDECIDED``, and names the bound. All bounds count steps, so an answer can be repeated.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import numpy as np
from pysat.solvers import Solver

from nemesis.checkers.cycles.edges import WW
from nemesis.checkers.cycles.orders.bits import has
from nemesis.checkers.cycles.orders.forbidden import Hop, Walk, cycles
from nemesis.checkers.cycles.orders.forcing import FIRST, SECOND, Choices, Sides, is_polynomial
from nemesis.checkers.cycles.orders.problem import NIL, Problem
from nemesis.checkers.framework.arrays import Numbers

MAX_TRANSACTIONS: Final = 4_000
MAX_CLAUSES: Final = 400_000
MAX_CONFLICTS: Final = 5_000_000
CYCLES_PER_ROUND: Final = 400
SOLVER: Final = "glucose4"


class Answer(Enum):
    EXISTS = "exists"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Decision:
    answer: Answer
    bound: str = ""
    """Which bound ended the search, as a phrase."""


Literal = tuple[int, int]
"""A choice and its side."""


@dataclass(slots=True)
class Lookup:
    """Which choices an edge of a cycle may stem from."""

    choices: Choices
    _entries: dict[int, dict[int, int]] = field(default_factory=dict)
    """By transaction and key the entry of ``problem.writer``."""
    _reads: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By reader what it read: key and writer."""
    _choice: dict[tuple[int, int], int] = field(default_factory=dict)
    _literals: dict[Hop, list[Literal] | None] = field(default_factory=dict)
    """By edge the literals that give it, ``None`` if it is certain. Cycles share most of their edges."""

    @classmethod
    def of(cls, choices: Choices) -> Lookup:
        problem = choices.problem
        lookup = cls(choices)
        entries: dict[int, dict[int, int]] = defaultdict(dict)
        pairs = zip(problem.writer.tolist(), problem.write_key.tolist(), strict=True)
        for entry, (txn, key) in enumerate(pairs):
            entries[txn][key] = entry
        reads: dict[int, list[tuple[int, int]]] = defaultdict(list)
        columns = (problem.reader.tolist(), problem.read_key.tolist(), problem.read_from.tolist())
        for reader, key, writer in zip(*columns, strict=True):
            if writer != NIL:
                reads[reader].append((key, writer))
        ends = zip(choices.first.tolist(), choices.second.tolist(), strict=True)
        lookup._choice = {pair: number for number, pair in enumerate(ends)}
        lookup._entries, lookup._reads = dict(entries), dict(reads)
        return lookup

    def literal(self, hop: Hop, sides: Sides) -> Literal | None:
        """Return a choice that gives this edge; ``None`` if it is certain."""
        if hop not in self._literals:
            self._literals[hop] = self._giving(hop)
        literals = self._literals[hop]
        if literals is None:
            return None
        for choice, side in literals:
            if sides[choice] == side:
                return choice, side
        raise AssertionError(f"no choice gives the edge {hop}")

    def _giving(self, hop: Hop) -> list[Literal] | None:
        """Return each choice and its side that give this edge; ``None`` if it is certain."""
        graph = self.choices.graph
        certain = graph.plain if hop.kind == WW else graph.rw
        if has(certain, np.array([hop.source]), np.array([hop.target]))[0]:
            return None
        after = self._entries[hop.target]
        if hop.kind == WW:
            versions = [(key, hop.source) for key in self._entries[hop.source]]
        else:
            versions = self._reads[hop.source]
        literals = [
            self._side(self._entries[writer][key], after[key])
            for key, writer in versions
            if key in after and writer != hop.target
        ]
        return [literal for literal in literals if literal is not None]

    def _side(self, before: int, after: int) -> Literal | None:
        choice = self._choice.get((before, after))
        if choice is not None:
            return choice, FIRST
        choice = self._choice.get((after, before))
        return None if choice is None else (choice, SECOND)


def decide(problem: Problem) -> Decision:
    """Return whether some version orders leave no cycle that the model forbids."""
    if len(problem) > MAX_TRANSACTIONS:
        return Decision(Answer.UNDECIDED, too_many(len(problem)))
    choices = Choices.of(problem)
    choices.force()
    if choices.is_impossible:
        return Decision(Answer.IMPOSSIBLE)
    if is_polynomial(problem.level):
        return Decision(Answer.EXISTS)
    return search_among(choices)


def too_many(count: int) -> str:
    return f"the search orders at most {MAX_TRANSACTIONS} transactions, not {count}"


def search_among(choices: Choices) -> Decision:
    """Decide what the choices leave open."""
    rank = topological_rank(choices)
    proposal = Proposal(choices, rank)
    lookup = Lookup.of(choices)
    clauses = 0
    with Solver(name=SOLVER) as solver:
        while True:
            graph = choices.graph_of(proposal.sides)
            met = False
            for walk in cycles(graph, rank, CYCLES_PER_ROUND):
                met = True
                clause = proposal.clause(walk, lookup)
                if not clause:
                    return Decision(Answer.IMPOSSIBLE)
                solver.add_clause(clause)
                clauses += 1
            if not met:
                return Decision(Answer.EXISTS)
            if clauses > MAX_CLAUSES:
                return Decision(Answer.UNDECIDED, f"the search stops after {MAX_CLAUSES} cycles")
            solver.set_phases(proposal.phases())
            solver.conf_budget(MAX_CONFLICTS)
            answer = solver.solve_limited()
            if answer is None:
                return Decision(
                    Answer.UNDECIDED, f"the search stops after {MAX_CONFLICTS} conflicts"
                )
            if not answer:
                return Decision(Answer.IMPOSSIBLE)
            proposal.adopt(solver.get_model())


class Proposal:
    """The side of each choice: as the solver decided, or else as a total order of the transactions has it."""

    def __init__(self, choices: Choices, rank: Numbers) -> None:
        writer = choices.problem.writer
        in_order = rank[writer[choices.first]] < rank[writer[choices.second]]
        by_rank = np.where(in_order, FIRST, SECOND).astype(np.int8)
        self.sides: Sides = np.where(choices.decided, choices.decided, by_rank).astype(np.int8)
        self._by_rank = by_rank
        self._variable: dict[int, int] = {}
        self._choice: list[int] = []

    def clause(self, walk: Walk, lookup: Lookup) -> list[int]:
        """Return that not all choices on this cycle hold; a variable is true if the first writer comes first."""
        clause = []
        for hop in walk:
            literal = lookup.literal(hop, self.sides)
            if literal is not None:
                choice, side = literal
                variable = self._of(choice)
                clause.append(-variable if side == FIRST else variable)
        return clause

    def _of(self, choice: int) -> int:
        if choice not in self._variable:
            self._choice.append(choice)
            self._variable[choice] = len(self._choice)
        return self._variable[choice]

    def phases(self) -> list[int]:
        """The sides of the total order, which the solver tries first."""
        return [
            variable if self._by_rank[choice] == FIRST else -variable
            for choice, variable in self._variable.items()
        ]

    def adopt(self, model: list[int]) -> None:
        """Take over what the solver decided."""
        for literal in model:
            if abs(literal) <= len(self._choice):
                self.sides[self._choice[abs(literal) - 1]] = FIRST if literal > 0 else SECOND


def topological_rank(choices: Choices) -> Numbers:
    """The position of each transaction in an order that keeps what is certain, the candidate order otherwise.

    Where rw alone makes a circle, which some levels allow, the earliest transaction left comes next.
    """
    import heapq

    from nemesis.checkers.cycles.orders.bits import members

    graph = choices.graph
    count = len(graph)
    for bits in (graph.plain | graph.rw, graph.plain):
        waits = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :count].sum(
            axis=0, dtype=np.int64
        )
        ready = np.flatnonzero(waits == 0).tolist()
        heapq.heapify(ready)
        placed = []
        while ready:
            txn = heapq.heappop(ready)
            placed.append(txn)
            after = members(bits[txn])
            waits[after] -= 1
            for other in after[waits[after] == 0].tolist():
                heapq.heappush(ready, other)
        if len(placed) == count:
            break
    rank = np.empty(count, dtype=np.int64)
    rank[placed] = np.arange(count)
    return rank
