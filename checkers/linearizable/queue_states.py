"""What became of each value of each queue, as arrays: who enqueued it, who dequeued it, whether it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.elements import (
    NONE,
    Listed,
    Puts,
    answers,
    first_of,
    numbered,
    values_at,
)
from nemesis.checkers.linearizable.object_operations import (
    ALWAYS,
    INFO,
    NEVER,
    OK,
    UNSET,
    Operations,
)

FS: Final = ("enqueue", "dequeue", "drain")
ENQUEUE, DEQUEUE, DRAIN = range(len(FS))


@dataclass(frozen=True, slots=True)
class QueueStates:
    """One entry for each value that was enqueued or dequeued; positions of operations, or ``NONE``."""

    key: Numbers
    value: Numbers
    puts: Puts
    """The enqueues."""
    first_taken: Numbers
    """The dequeue or drain that returned it and ended first, ..."""
    last_taken: Numbers
    """... or last."""
    unexpected: Numbers
    """The one that ended first, if it ended before all enqueues began."""
    taken_count: Numbers
    empty: Numbers
    """The operation on its queue that found it empty and began last."""
    takers_in_doubt: Numbers
    """How many values of its queue dequeues of unknown outcome may have taken; ``NEVER``: any number."""
    is_missing: Mask
    """Enqueued more often than dequeued, by operations that succeeded."""
    is_lost: Mask
    """Missing for certain."""
    is_recovered: Mask
    """Dequeued, though no enqueue is known to have succeeded."""
    drained: Numbers
    """The entries that drains returned, drain by drain, in the order of their answers ..."""
    drained_by: Numbers
    """... and the drain that returned each."""

    @property
    def is_duplicate(self) -> Mask:
        return (self.puts.attempt_count > 0) & (self.taken_count > self.puts.attempt_count)

    @property
    def is_once(self) -> Mask:
        """Enqueued once and dequeued once."""
        once: Mask = (self.puts.attempt_count == 1) & (self.taken_count == 1)
        return once

    @property
    def is_still_there(self) -> Mask:
        """Enqueued once, and neither dequeued nor perhaps dequeued by an operation of unknown outcome."""
        is_there = self.is_missing & ~self.is_lost
        still_there: Mask = is_there & (self.puts.attempt_count == 1) & (self.takers_in_doubt == 0)
        return still_there

    @classmethod
    def of(cls, operations: Operations, lists: Listed) -> QueueStates:
        f, outcome = operations.f, operations.outcome
        start, finish, key = operations.start, operations.finish, operations.key
        enqueues = np.flatnonzero(f == ENQUEUE)
        dequeues = np.flatnonzero((f == DEQUEUE) & (outcome == OK) & (operations.value != UNSET))
        drains, from_drains = answers(operations, lists)
        takers = np.concatenate([dequeues, drains])
        values = np.concatenate([operations.value[dequeues], from_drains])
        elements = numbered((key[enqueues], operations.value[enqueues]), (key[takers], values))
        of_enqueue, of_taker = elements.ids
        count = len(elements)

        puts = Puts.of(operations, enqueues, of_enqueue, count)
        enqueued, attempted = puts.succeeded, puts.attempted
        first_taken = first_of(of_taker, finish[takers], takers, count)
        too_early = values_at(finish, first_taken, NEVER) < values_at(start, attempted, NEVER)
        taken_count = np.bincount(of_taker, minlength=count)
        empty = _found_empty(operations, elements.key)
        is_put = outcome[enqueues] == OK
        is_before = is_put & (finish[enqueues] < values_at(start, empty, ALWAYS)[of_enqueue])
        gone = np.bincount(of_enqueue[is_before], minlength=count) - taken_count
        is_gone = gone > 0
        in_doubt = _in_doubt(operations, elements.key)
        return cls(
            key=elements.key,
            value=elements.value,
            puts=puts,
            first_taken=first_taken,
            last_taken=first_of(of_taker, -finish[takers], takers, count),
            unexpected=np.where(too_early, first_taken, NONE),
            taken_count=taken_count,
            empty=empty,
            takers_in_doubt=in_doubt,
            is_missing=np.bincount(of_enqueue[is_put], minlength=count) > taken_count,
            is_lost=is_gone & (_per_key(elements.key, np.maximum(gone, 0)) > in_doubt),
            is_recovered=(enqueued == NONE) & (attempted != NONE) & (first_taken != NONE),
            drained=of_taker[len(dequeues) :],
            drained_by=drains,
        )


def _found_empty(operations: Operations, keys: Numbers) -> Numbers:
    """For each entry the operation on its queue that found it empty and began last."""
    is_empty_dequeue = (operations.f == DEQUEUE) & (operations.value == UNSET)
    found_empty = np.flatnonzero(
        (operations.outcome == OK) & (is_empty_dequeue | (operations.f == DRAIN))
    )
    distinct, of_key = np.unique(keys, return_inverse=True)
    position = np.searchsorted(distinct, operations.key[found_empty])
    is_known = (position < len(distinct)) & np.isin(operations.key[found_empty], distinct)
    found_empty, position = found_empty[is_known], position[is_known]
    last = first_of(position, -operations.start[found_empty], found_empty, len(distinct))
    return last[of_key]


def _in_doubt(operations: Operations, keys: Numbers) -> Numbers:
    """For each entry how many values of its queue may have been taken by operations of unknown outcome."""
    doubtful = operations.outcome == INFO
    dequeues = operations.key[doubtful & (operations.f == DEQUEUE)]
    distinct, times = np.unique(dequeues, return_counts=True)
    position = np.searchsorted(distinct, keys)
    count = np.append(times, 0)[np.where(np.isin(keys, distinct), position, len(distinct))]
    is_any = np.isin(keys, operations.key[doubtful & (operations.f == DRAIN)])
    return np.where(is_any, NEVER, count)


def _per_key(keys: Numbers, counts: Numbers) -> Numbers:
    """For each entry the sum of the counts of its key."""
    distinct, of_key = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, of_key, counts)
    of_entry: Numbers = sums[of_key]
    return of_entry
