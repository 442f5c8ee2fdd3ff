"""predicate-inserts: of the inserts that exclude each other one succeeds at most.

An insert of a key reads two tables by a predicate, and inserts a row only if neither has one for the key. Two inserts
of one key that both succeeded each missed the other one's row: the later of them did not see what its predicate
selects. That is a cycle of two anti-dependencies by predicates (Adya's G2), which serializability forbids.
Smallest break: two inserts of key 1 succeed.

Snapshot isolation and repeatable read allow it. Reads of items cannot show it: no item existed that could be read.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import OK, Operations, in_history_order
from nemesis.history.sources import EventSource


class PredicateInserts(ObjectCheck):
    fs = ("insert",)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (PREDICATE_INSERTS,)

    def decide(self, operations: Operations, lists: Listed) -> Results:  # noqa: ARG002
        done = in_history_order(operations.select(operations.outcome == OK))
        keys, counts = np.unique(done.key, return_counts=True)
        wrong = keys[counts > 1]
        return conclude(
            PREDICATE_INSERTS,
            checked=len(done),
            findings=[_finding(done, int(key)) for key in wrong[:MAX_FINDINGS]],
            finding_count=len(wrong),
        )


def _finding(done: Operations, key: int) -> Finding:
    positions = np.flatnonzero(done.key == key).tolist()
    times = "Two" if len(positions) == 2 else str(len(positions))
    name = phrases.key_name(key)
    steps = [
        f"An insert was under way {phrases.when(done, position)}: it saw no row of {name}."
        for position in positions[: phrases.MAX_LISTED]
    ]
    steps.append("The later of them did not see the row of the earlier one.")
    shown = phrases.rows(done, *positions[: phrases.MAX_LISTED])
    sentence = f"{times} inserts of {name} succeeded, each of which needs that no row of it exists."
    return finding("predicate-inserts", name, sentence, *shown, steps=steps)


PREDICATE_INSERTS: Final = Property(
    name="predicate-inserts",
    promise="Of inserts that exclude each other by a predicate one succeeds at most.",
    unit="inserts",
    unknown="No insert succeeded, or events cannot be paired to operations.",
    source='Adya, "Weak Consistency" (1999); jepsen.tests.adya.',
    check=PredicateInserts,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.PREDICATE_INSERTS,
)
