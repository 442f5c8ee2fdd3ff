"""sequential: what a client inserted first is visible first.

A write of a key inserts its subkeys one after the other, each in a transaction of its own. A read queries them in the
reverse sequence, newest first. So once a read has returned a subkey, it returns all that it queries afterwards, because
they were inserted before that subkey.
Smallest break: a read returns the last subkey, then nil.

Sequential consistency promises it; serializability does not. Each read is judged alone, as in Jepsen: two reads of one
client are not compared, and neither is a read with an earlier write of the same client.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed, answers
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import OK, Operations, in_history_order
from nemesis.history.sources import EventSource

FS: Final = ("write", "read")
WRITE, READ = range(len(FS))
NIL: Final = -1
"""A subkey that was not there."""


class Sequential(ObjectCheck):
    fs = FS
    lists = (FS[READ],)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (SEQUENTIAL,)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        read, value = answers(operations, lists)
        wrong, names = _gaps(read, value)
        findings = [
            _finding(operations, position, name)
            for position, name in sorted(
                zip(wrong[:MAX_FINDINGS].tolist(), names[:MAX_FINDINGS].tolist(), strict=True)
            )
        ]
        is_answered = (operations.f == READ) & (operations.outcome == OK)
        checked = int(np.count_nonzero(is_answered))
        return conclude(SEQUENTIAL, checked=checked, findings=findings, finding_count=len(wrong))


def _gaps(read: Numbers, value: Numbers) -> tuple[Numbers, Numbers]:
    """Return the reads that returned nil after a subkey, each once, and for each that subkey.

    ``read``: the operation of each entry; the entries of one operation are together, in their sequence.
    """
    follows = (read[1:] == read[:-1]) & (value[1:] == NIL) & (value[:-1] != NIL)
    # The entry before the first nil that follows a subkey is a subkey.
    before = np.flatnonzero(follows)
    wrong, first = np.unique(read[before], return_index=True)
    return wrong, value[before[first]]


def _finding(operations: Operations, position: int, name: int) -> Finding:
    key = phrases.key_name(int(operations.key[position]))
    sentence = f"A read of {key} returned {name} and then nil for a subkey that is older."
    steps = [
        f"A read was under way {phrases.when(operations, position)}: it returned {name}, and then nil.",
        "A client inserts subkeys one after the other, and reads query them newest first.",
    ]
    return finding("sequential", key, sentence, *phrases.rows(operations, position), steps=steps)


SEQUENTIAL: Final = Property(
    name="sequential",
    promise="What a client inserted first is visible first.",
    unit="reads",
    unknown="No read succeeded, or events cannot be paired to operations.",
    source="Jepsen's sequential workload of CockroachDB.",
    check=Sequential,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.SEQUENTIAL,
)
