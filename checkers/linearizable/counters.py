"""counter-bounds, counter-monotonic: a counter that only grows, as Jepsen's workload has it.

* **counter-bounds**: a read returns at least the initial value and all adds that had succeeded before it began, and at
  most the initial value and all adds that had begun when it ended, except those that certainly failed.
  Smallest break: add 1 has ended; a read that begins afterwards returns 0.
* **counter-monotonic**: a read returns at least what a read returned that ended before it began.
  Smallest break: add 1 is in doubt; a read returns 1, a later one 0.

Each follows from a moment at which each operation takes effect. The reverse does not hold: which adds together make a
value is not searched for (adds of 2 and a read of 1 are not found), and neither is it in Jepsen. The initial value is
0, unless another is stated. "Before" is strict: operations that touch in one nanosecond may be in either order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Mask, Numbers
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
from nemesis.history.sources import EventSource

FS: Final = ("add", "read")
ADD, READ = range(len(FS))


class Counter(ObjectCheck):
    fs = FS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (COUNTER_BOUNDS, COUNTER_MONOTONIC)

    def __init__(self, initial: int = 0) -> None:
        self.initial = initial

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(0 if asked.initial is None else asked.initial)

    def decide(self, operations: Operations, lists: Listed) -> Results:  # noqa: ARG002
        bounds: list[Finding] = []
        falls: list[Finding] = []
        for of_key in by_key(operations):
            reads = np.flatnonzero(_is_answered(of_key))
            bounds += _outside(of_key, reads, self.initial)
            falls += _falling(of_key, reads)
        checked = int(np.count_nonzero(_is_answered(operations)))
        return [
            conclude(COUNTER_BOUNDS, checked=checked, findings=bounds),
            conclude(COUNTER_MONOTONIC, checked=checked, findings=falls),
        ]


def _is_answered(operations: Operations) -> Mask:
    is_read = (operations.f == READ) & (operations.outcome == OK)
    is_answered: Mask = is_read & (operations.value != UNSET)
    return is_answered


@dataclass(frozen=True, slots=True)
class _Sums:
    """Amounts that have been added by a time: what is sorted by time, and the sums up to each entry."""

    times: Numbers
    positions: Numbers
    """Of the adds, in that order."""
    sums: Numbers

    @classmethod
    def of(cls, operations: Operations, adds: Numbers, times: Numbers) -> _Sums:
        by_time = np.argsort(times[adds], kind="stable")
        positions = adds[by_time]
        sums = np.concatenate([[0], np.cumsum(operations.value[positions])])
        return cls(times[positions], positions, sums)


def _outside(operations: Operations, reads: Numbers, initial: int) -> Iterator[Finding]:
    """The reads that returned too little or too much."""
    is_add = (operations.f == ADD) & (operations.value != UNSET)
    done = np.flatnonzero(is_add & (operations.outcome == OK))
    tried = np.flatnonzero(is_add & (operations.outcome != FAIL))
    ended = _Sums.of(operations, done, operations.finish)
    begun = _Sums.of(operations, tried, operations.start)
    unstated = (operations.f == ADD) & (operations.value == UNSET) & (operations.outcome != FAIL)
    first_unstated = operations.start[unstated].min(initial=NEVER)
    counts = np.searchsorted(ended.times, operations.start[reads], side="left")
    lower = initial + ended.sums[counts]
    counts_begun = np.searchsorted(begun.times, operations.finish[reads], side="right")
    upper = initial + begun.sums[counts_begun]
    values = operations.value[reads]
    is_bounded = operations.finish[reads] < first_unstated
    for index in np.flatnonzero(values < lower).tolist():
        last = int(ended.positions[counts[index] - 1]) if counts[index] else None
        yield _finding(
            operations,
            int(reads[index]),
            f"though what had been added before it began makes {lower[index]}.",
            last,
        )
    for index in np.flatnonzero((values > upper) & is_bounded).tolist():
        yield _finding(
            operations,
            int(reads[index]),
            f"though all adds that had begun when it ended make {upper[index]}.",
            None,
        )


def _falling(operations: Operations, reads: Numbers) -> Iterator[Finding]:
    """The reads that returned less than an earlier one."""
    if not len(reads):
        return
    by_end = reads[np.argsort(operations.finish[reads], kind="stable")]
    values = operations.value[by_end]
    largest = np.maximum.accumulate(values)
    counts = np.searchsorted(operations.finish[by_end], operations.start[reads], side="left")
    for index in np.flatnonzero(counts > 0).tolist():
        before = int(counts[index]) - 1
        if largest[before] <= operations.value[reads[index]]:
            continue
        earlier = int(by_end[np.searchsorted(largest, largest[before])])
        said = f"though a read that had ended before returned {largest[before]}."
        yield _finding(operations, int(reads[index]), said, earlier, name="counter-monotonic")


def _finding(
    operations: Operations,
    read: int,
    though: str,
    other: int | None,
    name: str = "counter-bounds",
) -> Finding:
    key = phrases.key_name(int(operations.key[read]))
    sentence = f"{key} was read as {operations.value[read]}, {though}"
    return finding(name, key, sentence, *phrases.rows(operations, other, read))


COUNTER_BOUNDS: Final = Property(
    name="counter-bounds",
    promise="A read of a counter returns all adds that had succeeded, and none that had not begun.",
    unit="reads",
    unknown="No read succeeded, or events cannot be paired to operations.",
    source="The counter checker of Jepsen.",
    check=Counter,
    decided_from=frozenset({EventSource.CLIENTS}),
    breaks=breaks.COUNTER_BOUNDS,
)
COUNTER_MONOTONIC: Final = replace(
    COUNTER_BOUNDS,
    name="counter-monotonic",
    promise="A counter that is only added to never falls.",
    source="Herlihy and Wing (1990).",
    is_self_evident=True,
    breaks=breaks.COUNTER_MONOTONIC,
)
