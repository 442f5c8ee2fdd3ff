"""unique-ids: a generator returns no id twice.

Two operations ``generate`` that succeeded returned different ids, whenever they ran.
Smallest break: two operations return 7.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from nemesis.checkers.linearizable.object_operations import (
    OK,
    UNSET,
    Operations,
    in_history_order,
)
from nemesis.history.sources import EventSource


class UniqueIds(ObjectCheck):
    fs = ("generate",)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (UNIQUE_IDS,)

    def decide(self, operations: Operations, lists: Listed) -> Results:  # noqa: ARG002
        done = in_history_order(
            operations.select((operations.outcome == OK) & (operations.value != UNSET))
        )
        ids, counts = np.unique(done.value, return_counts=True)
        repeated = ids[counts > 1]
        findings = list(_repeated(done, repeated[:MAX_FINDINGS].tolist()))
        return conclude(
            UNIQUE_IDS, checked=len(done), findings=findings, finding_count=len(repeated)
        )


def _repeated(done: Operations, ids: list[int]) -> Iterator[Finding]:
    for value in ids:
        positions = np.flatnonzero(done.value == value).tolist()
        times = "twice" if len(positions) == 2 else f"{len(positions)} times"
        sentence = f"The id {value} was generated {times}."
        shown = phrases.rows(done, *positions[:2])
        yield finding("unique-ids", f"id {value}", sentence, *shown)


UNIQUE_IDS: Final = Property(
    name="unique-ids",
    promise="No id is generated twice.",
    unit="ids",
    unknown="No id was generated, or events cannot be paired to operations.",
    source="The unique-ids checker of Jepsen.",
    check=UniqueIds,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.UNIQUE_IDS,
)
