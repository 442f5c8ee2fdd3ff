"""What a queue that keeps order may not do with values of which it is known when they were put in and taken out.

Of values that are enqueued once and dequeued at most once, and operations of which none is in doubt, this, a value that
was never enqueued and one that is dequeued twice are all that can be wrong. What one drain returned was dequeued in
this order. Source: Henzinger, Sezgin and Vafeiadis, "Aspect-Oriented Linearizability Proofs" (CONCUR 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.framework.segment import Numbers
from nemesis.checkers.linearizable.elements import NONE, values_at
from nemesis.checkers.linearizable.object_operations import NEVER, OK, UNSET, Operations
from nemesis.checkers.linearizable.queue_states import DEQUEUE, DRAIN, QueueStates
from nemesis.checkers.linearizable.register_zones import key_after_key


def overtaken(operations: Operations, states: QueueStates) -> tuple[Numbers, Numbers]:
    """Return (values, those that overtook them): one entry for each value that overtook one, by its dequeue.

    A value that is still in the queue is overtaken by each that is not.
    """
    chosen = np.flatnonzero(states.is_once | states.is_still_there)
    if not len(chosen):
        return chosen, chosen
    put, took = states.puts.attempted[chosen], states.first_taken[chosen]
    times = np.stack(
        [
            operations.finish[put],
            operations.start[put],
            values_at(operations.start, took, NEVER),
            values_at(operations.finish, took, NEVER),
        ]
    )
    put_end, put_start, take_start, take_end = key_after_key(times, states.key[chosen])
    by_end = np.argsort(put_end, kind="stable")
    latest = np.maximum.accumulate(take_start[by_end])
    before = np.searchsorted(put_end[by_end], put_start, side="left")
    is_late = (before > 0) & (latest[before - 1] > take_end)
    second = np.flatnonzero(is_late)
    second = second[np.argsort(take_end[second], kind="stable")]
    first = by_end[np.searchsorted(latest, latest[before[second] - 1], side="left")]
    return chosen[first], chosen[second]


def overtaken_in_drains(operations: Operations, states: QueueStates) -> tuple[Numbers, Numbers]:
    """Return (values, those that overtook them), as ``overtaken`` does, of values that one drain returned."""
    is_chosen = states.is_once[states.drained]
    chosen, drains = states.drained[is_chosen], states.drained_by[is_chosen]
    if not len(chosen):
        return chosen, chosen
    put = states.puts.attempted[chosen]
    times = np.stack([operations.finish[put], operations.start[put]])
    put_end, put_start = key_after_key(times, np.cumsum(np.append(0, np.diff(drains) != 0)))
    # The enqueue that ended first, of each value and those behind it; other drains' times are larger.
    earliest = np.minimum.accumulate(put_end[::-1])[::-1]
    second = np.flatnonzero(earliest < put_start)
    by_end = np.argsort(put_end, kind="stable")
    first = by_end[np.searchsorted(put_end[by_end], earliest[second], side="left")]
    return chosen[first], chosen[second]


@dataclass(frozen=True, slots=True)
class NeverEmpty:
    """Operations that found their queue empty, which held something at each moment of them."""

    operations: Numbers
    values: Numbers
    """Values that were in some queue for a while, by queue and by when they were in."""
    first: Numbers
    """For each operation the first of ``values`` that was in while it lasted, and behind the last."""
    end: Numbers

    @classmethod
    def of(cls, operations: Operations, states: QueueStates) -> NeverEmpty:
        values = np.flatnonzero(states.is_once | states.is_still_there)
        is_empty = (operations.f == DEQUEUE) & (operations.value == UNSET)
        found_empty = np.flatnonzero(
            (operations.outcome == OK) & (is_empty | (operations.f == DRAIN))
        )
        found_empty = found_empty[np.isin(operations.key[found_empty], states.key[values])]
        put, took = states.puts.attempted[values], states.first_taken[values]
        times = np.stack(
            [
                np.concatenate((operations.finish[put], operations.start[found_empty])),
                np.concatenate(
                    (values_at(operations.start, took, NEVER), operations.finish[found_empty])
                ),
            ]
        )
        keys = np.concatenate((states.key[values], operations.key[found_empty]))
        begins, ends = key_after_key(times, keys)
        (since, began), (until, ended) = (np.split(row, [len(values)]) for row in (begins, ends))
        kept = np.flatnonzero(since < until)
        kept = kept[np.argsort(since[kept], kind="stable")]
        values, since, until = values[kept], since[kept], until[kept]
        if not len(values):
            nothing = np.zeros(0, dtype=np.int64)
            return cls(nothing, nothing, nothing, nothing)
        # Where one value begins to be in before those before it have left, they are in without a gap.
        reach = np.maximum.accumulate(until)
        is_new = np.ones(len(values), dtype=np.bool_)
        is_new[1:] = since[1:] >= reach[:-1]
        last_of_stretch = np.append(np.flatnonzero(is_new)[1:], len(values)) - 1
        end_of = np.append(reach[last_of_stretch][np.cumsum(is_new) - 1], NONE)
        before = np.searchsorted(since, began, side="left") - 1
        chosen = np.flatnonzero(end_of[before] > ended)
        first = np.searchsorted(reach, began[chosen], side="right")
        end = np.searchsorted(since, ended[chosen], side="right")
        return cls(found_empty[chosen], values, first, end)
