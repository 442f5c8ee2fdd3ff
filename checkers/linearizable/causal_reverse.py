"""causal-reverse: what is read with a value includes all that was written before that value.

Values are inserted, each by a write, and reads return all of them. If the write of 1 had ended before the write of 2
began, a read that returned 2 returned 1, too. Strict serializability promises it, serializability does not.
Smallest break: write 1, then write 2; a read returns 2 alone.

A write that certainly failed did not begin. A value with several writes began with the first of them, and had been
written when the first that succeeded ended. "Before" is strict: operations that touch in one nanosecond may be in
either order. Reads that lack a value for any other reason are not judged here, as in Jepsen.

Limits: all that reads returned fits into memory (16 bytes for each value of each read).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import (
    Listed,
    Numbering,
    Puts,
    answers,
    numbered,
    values_at,
)
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import (
    ALWAYS,
    NEVER,
    OK,
    UNSET,
    Operations,
    in_history_order,
)
from nemesis.history.sources import EventSource

FS: Final = ("write", "read")
WRITE, READ = range(len(FS))


class CausalReverse(ObjectCheck):
    fs = FS
    lists = (FS[READ],)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CAUSAL_REVERSE,)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        operations = in_history_order(operations)
        values = _Values.of(operations, lists)
        wrong = values.incomplete_reads()
        findings = [values.finding(operations, read) for read in wrong[:MAX_FINDINGS].tolist()]
        is_answered = (operations.f == READ) & (operations.outcome == OK)
        checked = int(np.count_nonzero(is_answered))
        return conclude(
            CAUSAL_REVERSE, checked=checked, findings=findings, finding_count=len(wrong)
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """When each value was written, by its id, and which reads returned it."""

    ids: Numbering
    puts: Puts
    begun: Numbers
    """For each value when its first write began; ``ALWAYS`` if none may have happened."""
    acknowledged: Numbers
    """For each value when the first successful write ended; ``NEVER`` without one."""
    read: Numbers
    """Pairs of a read and a value that it returned, each once: the position of the read, ..."""
    value: Numbers
    """... and the id of the value."""
    limit: Numbers
    """For each operation: the latest beginning of what it returned."""

    @classmethod
    def of(cls, operations: Operations, lists: Listed) -> _Values:
        is_stated = (operations.f == WRITE) & (operations.value != UNSET)
        writes = np.flatnonzero(is_stated)
        by, returned = answers(operations, lists)
        ids = numbered(
            (operations.key[writes], operations.value[writes]), (operations.key[by], returned)
        )
        of_write, of_answer = ids.ids
        puts = Puts.of(operations, writes, of_write, len(ids))
        begun = values_at(operations.start, puts.attempted, ALWAYS)
        pairs = np.unique(by * max(len(ids), 1) + of_answer)
        read, value = np.divmod(pairs, max(len(ids), 1))
        limit = np.full(len(operations), ALWAYS, dtype=np.int64)
        np.maximum.at(limit, read, begun[value])
        acknowledged = values_at(operations.finish, puts.succeeded, NEVER)
        return cls(ids, puts, begun, acknowledged, read, value, limit)

    def incomplete_reads(self) -> Numbers:
        """Return the positions of reads that lack a value which was written before one that they returned.

        A read has to return all values of its key that were acknowledged before its limit. The number of them is
        compared with the number of those that it returned, so that no pair of a read and a missing value is made.
        """
        is_required = self.acknowledged[self.value] < self.limit[self.read]
        returned = np.bincount(self.read[is_required], minlength=len(self.limit))
        reads, first = np.unique(self.read, return_index=True)
        required = np.zeros(len(reads), dtype=np.int64)
        keys = self.ids.key[self.value[first]]
        for key in np.unique(keys):
            chosen = keys == key
            times = np.sort(self.acknowledged[self._of_key(int(key))])
            required[chosen] = np.searchsorted(times, self.limit[reads[chosen]], side="left")
        return reads[returned[reads] < required]

    def _of_key(self, key: int) -> slice:
        """Return the ids of a key's values: ids are in the order of keys."""
        start, stop = np.searchsorted(self.ids.key, [key, key + 1])
        return slice(int(start), int(stop))

    def finding(self, operations: Operations, read: int) -> Finding:
        """Return the finding about a read: the newest value that it returned, and the first that it lacks."""
        returned = self.value[self.read == read]
        newer = int(returned[np.argmax(self.begun[returned])])
        ids = np.arange(len(self.ids))[self._of_key(int(operations.key[read]))]
        is_missing: Mask = (self.acknowledged[ids] < self.limit[read]) & ~np.isin(ids, returned)
        missing = ids[is_missing]
        older = int(missing[np.argmin(self.acknowledged[missing])])
        return _finding(operations, read, self._write(older, newer), self._names(older, newer))

    def _write(self, older: int, newer: int) -> tuple[int, int]:
        return int(self.puts.succeeded[older]), int(self.puts.attempted[newer])

    def _names(self, older: int, newer: int) -> tuple[int, int]:
        return int(self.ids.value[older]), int(self.ids.value[newer])


def _finding(
    operations: Operations, read: int, writes: tuple[int, int], values: tuple[int, int]
) -> Finding:
    older, newer = values
    key = phrases.key_name(int(operations.key[read]))
    sentence = (
        f"A read of {key} returned {newer} without {older}, which had been written before "
        f"the write of {newer} began."
    )
    steps = _steps(operations, read, writes, values)
    rows = phrases.rows(operations, *writes, read)
    return finding("causal-reverse", key, sentence, *rows, steps=steps)


def _steps(
    operations: Operations, read: int, writes: tuple[int, int], values: tuple[int, int]
) -> Iterator[str]:
    older, newer = values
    yield f"The write of {older} was under way {phrases.when(operations, writes[0])}."
    yield (f"The first write of {newer} was {phrases.when(operations, writes[1])}, which is later.")
    yield (
        f"A read was under way {phrases.when(operations, read)}: "
        f"it returned {newer} and not {older}."
    )


CAUSAL_REVERSE: Final = Property(
    name="causal-reverse",
    promise="What is read with a value includes all that was written before that value.",
    unit="reads",
    unknown="No read succeeded, or events cannot be paired to operations.",
    source="Jepsen's causal-reverse workload.",
    check=CausalReverse,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.CAUSAL_REVERSE,
)
