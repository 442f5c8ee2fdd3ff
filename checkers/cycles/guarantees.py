"""What a guarantee requires every read to show: the session guarantees, and monotonic atomic view.

**Executions.** A history keeps a guarantee if some execution explains it. An execution is one order of all committed
transactions, in which the writes of a transaction stand together, and for each read a set of writes of its key that are
*visible*. A read returns the last visible write in that order; it returns the initial value if none is visible.
A list also contains all that was appended before. A *session* is the order of what one process did: of its
transactions, and of the micro-operations inside each.

| guarantee | requires |
|---|---|
| read your writes | a write is visible to every later read of its key in its session |
| monotonic reads | what is visible to a read is visible to every later read of the key in the session |
| monotonic writes | the writes of a session are in its order |
| writes follow reads | what is visible to a read comes before every later write of the session |
| monotonic atomic view | of a transaction that a read returned, all writes are visible to later reads of the reader |

The session guarantees require nothing else: a read may return a part of a transaction, or what a later transaction
wrote. Transactions have one order, as under read uncommitted, so G0 is forbidden. A read shows that a transaction in
doubt took effect. A failed one takes no part, and its elements of a list are passed over. Monotonic atomic view also
forbids what read committed forbids, and each writer comes before its readers.

**Decision.** Each requirement is an order of two writes of a key, as the read returned the last of those it shows. So
a history keeps a guarantee exactly if no read misses all that it has to show (``Missed``), and the order of writes that
follows has no cycle. Lists show themselves what is visible, so a list that lacks an element is a miss.
Smallest breaks: a process writes 1 and then reads nil; it reads 1 and then nil; lists show the appends of a process
turned round; a process reads one append of a transaction, and its own later append comes before another one of that;
a transaction reads one of two writes.

``guarantee_requirements`` collects the misses and the orders, within limits. If the orders are not all known, the
verdict is unknown, unless those that are known have a cycle.

Sources: Terry and others, "Session Guarantees" (1994); Viotti and Vukolić, "Consistency in Non-Transactional
Distributed Storage Systems" (2016), to which Jepsen's definitions refer; Bailis and others, "Highly Available
Transactions" (VLDB 2013), which has these guarantees for each item of a transaction, and monotonic atomic view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.edges import WR, WW, Edges
from nemesis.checkers.cycles.guarantee_requirements import (
    MAX_EDGES,
    Missed,
    Requirement,
    requirements_of,
)
from nemesis.checkers.cycles.models import Guarantee
from nemesis.checkers.cycles.paths import shortest_cycle
from nemesis.checkers.cycles.read_versions import ReadVersions
from nemesis.checkers.cycles.transactions import Transactions
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.components import components


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two reads of a list of which no order of the appends gives both."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class GuaranteeBroken:
    """Why no execution keeps the guarantee."""

    guarantee: Guarantee
    missed: Missed | None = None
    disagreement: Disagreement | None = None
    cycle: tuple[Requirement, ...] = ()
    """From each transaction to the next; the last leads to the first."""


def broken_guarantee(
    guarantee: Guarantee,
    txns: Transactions,
    writes: Writes,
    committed: Numbers,
    versions: ReadVersions,
    edges: Edges,
) -> GuaranteeBroken | str | None:
    """Return why no execution keeps the guarantee, why that is undecided, or None if one keeps it.

    ``committed``: numbers of the committed transactions. ``edges``: dependencies that the history shows.
    """
    if versions.disagreement is not None:
        return GuaranteeBroken(guarantee, disagreement=Disagreement(*versions.disagreement))
    requirements = requirements_of(guarantee, txns, writes, committed, versions)
    if requirements.missed is not None:
        return GuaranteeBroken(guarantee, missed=requirements.missed)
    kinds = (WW, WR) if guarantee is Guarantee.MONOTONIC_ATOMIC_VIEW else (WW,)
    cycle = _cycle(
        len(txns), requirements.listed, edges, np.flatnonzero(np.isin(edges.kind, kinds))
    )
    if cycle:
        return GuaranteeBroken(guarantee, cycle=cycle)
    return f"the search ends at {MAX_EDGES} pairs of writes" if requirements.is_cut else None


def _cycle(
    count: int, requirements: list[Requirement], edges: Edges, shown: Numbers
) -> tuple[Requirement, ...]:
    """Return a shortest cycle of the first component that has one."""
    source = np.array([item.source for item in requirements], dtype=np.int64)
    target = np.array([item.target for item in requirements], dtype=np.int64)
    source = np.concatenate([source, edges.source[shown]])
    target = np.concatenate([target, edges.target[shown]])
    component = components(2 * count, source, target, is_strong=True)
    inside = np.flatnonzero(component[source] == component[target])
    if not len(inside):
        return ()
    in_component = component[source] == component[source[inside[0]]]
    starts = inside[in_component[inside]]
    walk = shortest_cycle(
        2 * count, source, target, starts, in_component & (component[target] == component[source])
    )
    steps = [
        requirements[edge]
        if edge < len(requirements)
        else _shown(edges, int(shown[edge - len(requirements)]))
        for edge in walk.tolist()
    ]
    return _without_nodes(count, steps)


def _shown(edges: Edges, edge: int) -> Requirement:
    """Return an order that the history shows itself."""
    ends = int(edges.source[edge]), int(edges.target[edge])
    return Requirement(*ends, first=int(edges.via[edge]), kind=int(edges.kind[edge]))


def _without_nodes(count: int, steps: list[Requirement]) -> tuple[Requirement, ...]:
    """Join the steps to and from the nodes of sessions: each read leads to the next writer."""
    begin = next(number for number, step in enumerate(steps) if step.source < count)
    joined: list[Requirement] = []
    for step in steps[begin:] + steps[:begin]:
        if step.source >= count:
            joined[-1] = Requirement(joined[-1].source, step.target, joined[-1].first)
        else:
            joined.append(step)
    return tuple(joined)
