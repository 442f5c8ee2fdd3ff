"""counter-sum, counter-final: a counter whose replicas get every add at some time, as in Maelstrom.

``add`` of a number changes the counter; in a PN-counter the number may be negative. A replica may lack adds for a
while, so a read may return less or more than a later one, and a client need not read its own add. A read that the
history marks with ``:final? true`` (here the function ``final-read``) is one after which the test expects no add to be
missing. The counter begins with 0.

* **counter-sum**: each read returns the sum of some adds. These had begun when the read ended, and did not fail; each
  counts once, and whole.
  Smallest break: add 2 has ended; a read returns 1.
* **counter-final**: each final read returns the sum of all adds that had succeeded before it began, and of some of the
  other adds that had begun when it ended and did not fail.
  Smallest break: add 1 has ended; a final read that begins afterwards returns 0.

Maelstrom's checker (``maelstrom.workload.pn-counter``) judges final reads only. It counts all adds of the history that
succeeded. The same adds count here if final reads follow them, as they do there. counter-sum is ours: it follows from
an add that takes effect on a replica at most once. Final reads may differ from each other, if adds of unknown outcome
explain that: such an add may reach a replica between two reads.

Without a final read, counter-final is ``unknown``, even for reads after the last add: nothing states that every replica
had every add by then. Where the sums of adds are too many (``subset_sums``), a read may be ``unknown``. "Before" is
strict: operations that touch in one nanosecond may be in either order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import (
    FAIL,
    NEVER,
    OK,
    UNSET,
    Operations,
    by_key,
)
from nemesis.checkers.linearizable.subset_sums import Budget, SubsetSums
from nemesis.history.sources import EventSource

FS: Final = ("add", "read", "final-read")
ADD, READ, FINAL_READ = range(len(FS))


class EventualCounter(ObjectCheck):
    """A grow-only counter or a PN-counter: which adds are possible is decided when the file is read."""

    fs = FS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (COUNTER_SUM, COUNTER_FINAL)

    def decide(self, operations: Operations, lists: Listed) -> Results:  # noqa: ARG002
        budget = Budget()
        sums: list[Finding] = []
        finals: list[Finding] = []
        counts = [0, 0]
        for of_key in by_key(operations):
            counter = _Counter.of(of_key, budget)
            final = counter.reads[of_key.f[counter.reads] == FINAL_READ]
            sums += _not_sums(counter)
            finals += _not_converged(counter, final) if len(final) else _without_final(of_key)
            counts[0] += len(counter.reads)
            counts[1] += len(final)
        return [
            conclude(COUNTER_SUM, checked=counts[0], findings=sums),
            conclude(COUNTER_FINAL, checked=counts[1], findings=finals),
        ]


@dataclass(frozen=True, slots=True)
class _Counter:
    """The operations on one counter."""

    operations: Operations
    adds: Numbers
    """Positions of the adds that did not fail, in the order in which they began."""
    reads: Numbers
    """Positions of the reads that can be judged, in the order in which they ended."""
    budget: Budget

    @classmethod
    def of(cls, operations: Operations, budget: Budget) -> _Counter:
        is_add = (operations.f == ADD) & (operations.outcome != FAIL)
        is_stated = operations.value != UNSET
        adds = np.flatnonzero(is_add & is_stated)
        # An add of an unknown amount explains any value that is read after it began.
        first_unstated = operations.start[is_add & ~is_stated].min(initial=NEVER)
        is_read = (operations.f != ADD) & (operations.outcome == OK) & is_stated
        reads = np.flatnonzero(is_read & (operations.finish < first_unstated))
        return cls(
            operations,
            adds[np.argsort(operations.start[adds], kind="stable")],
            reads[np.argsort(operations.finish[reads], kind="stable")],
            budget,
        )

    def begun(self, read: int) -> int:
        """Return how many adds had begun when a read ended."""
        starts = self.operations.start[self.adds]
        return int(np.searchsorted(starts, self.operations.finish[read], side="right"))

    def amounts(self, selection: Numbers | slice) -> list[int]:
        amounts: list[int] = self.operations.value[self.adds[selection]].tolist()
        return amounts


def _not_sums(counter: _Counter) -> Iterator[Finding]:
    """The reads that returned no sum of adds that had begun."""
    amounts = counter.amounts(slice(None))
    sums = SubsetSums(counter.budget)
    counted = 0
    for read in counter.reads.tolist():
        begun = counter.begun(read)
        sums = sums.and_also(amounts[counted:begun])
        counted = begun
        yield from _judged(counter, read, 0, sums, "counter-sum", "the adds that had begun")


def _not_converged(counter: _Counter, reads: Numbers) -> Iterator[Finding]:
    """The final reads that lack an add, or have too much."""
    operations = counter.operations
    is_ok = operations.outcome[counter.adds] == OK
    finish = operations.finish[counter.adds]
    by_finish = np.flatnonzero(is_ok)[np.argsort(finish[is_ok], kind="stable")]
    totals = list(accumulate(counter.amounts(by_finish), initial=0))
    doubtful = SubsetSums(counter.budget)
    counted = 0
    for read in reads.tolist():
        start = operations.start[read]
        begun = counter.begun(read)
        is_new = ~is_ok[counted:begun]
        doubtful = doubtful.and_also(counter.amounts(counted + np.flatnonzero(is_new)))
        counted = begun
        needed = totals[int(np.searchsorted(finish[by_finish], start, side="left"))]
        # An add that succeeded during the read may be in it or not.
        meanwhile = np.flatnonzero(is_ok[:begun] & (finish[:begun] >= start))
        sums = doubtful.and_also(counter.amounts(meanwhile))
        adds = "the adds that had succeeded, with any of unknown outcome,"
        yield from _judged(counter, read, needed, sums, "counter-final", adds)


def _judged(
    counter: _Counter, read: int, base: int, sums: SubsetSums, name: str, adds: str
) -> Iterator[Finding]:
    """A finding if a read is not the base and one of the sums."""
    value = int(counter.operations.value[read])
    is_possible = sums.has(value - base)
    if is_possible:
        return
    key = phrases.key_name(int(counter.operations.key[read]))
    final = " in a final read" if counter.operations.f[read] == FINAL_READ else ""
    if is_possible is None:
        why = f"which is undecided: {adds} have too many different sums."
    else:
        why = f"though {adds} make only {_values(base, sums)}."
    yield finding(
        name,
        key,
        f"{key} was read as {value}{final}, {why}",
        *phrases.rows(counter.operations, read),
        verdict=Verdict.UNKNOWN if is_possible is None else Verdict.INVALID,
    )


def _values(base: int, sums: SubsetSums) -> str:
    """The smallest numbers that the base and the sums make, in words."""
    intervals, is_all = sums.intervals(phrases.MAX_LISTED)
    words = [
        str(base + low) if low == high else f"{base + low} to {base + high}"
        for low, high in intervals
    ]
    if not is_all:
        words.append("certain larger sums")
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _without_final(operations: Operations) -> Iterator[Finding]:
    key = phrases.key_name(int(operations.key[0]))
    sentence = f"{key} has no successful read that :final? true marks, so nothing states when it had every add."
    yield finding("counter-final", key, sentence, verdict=Verdict.UNKNOWN)


COUNTER_SUM: Final = Property(
    name="counter-sum",
    promise="A read of a counter returns the sum of some adds that had begun and did not fail.",
    unit="reads",
    unknown="No read succeeded, adds have too many different sums, or events cannot be paired to operations.",
    source="Shapiro et al., conflict-free replicated data types (2011): an update takes effect once on each replica.",
    check=EventualCounter,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.COUNTER_SUM,
)
COUNTER_FINAL: Final = replace(
    COUNTER_SUM,
    name="counter-final",
    promise="A final read of a counter returns all adds that had succeeded, and of the others some.",
    unit="final reads",
    unknown="No successful read is final, adds have too many different sums, or events cannot be paired.",
    source="The checker of Maelstrom's g-counter and pn-counter.",
    breaks=breaks.COUNTER_FINAL,
)
