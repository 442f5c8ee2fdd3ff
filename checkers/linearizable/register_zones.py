"""Whether a register whose values are written once each can have behaved so: zones, without a search.

Gibbons and Korach ("Testing shared memories", 1997). Because a value is written once, it is current during one stretch
of time, and all its reads lie in there. Of a value's operations, its write and its reads, take the *earliest end* and
the *latest start*. If some operation ended before another one started, the value was current at the one and still at
the other: from the earliest end to the latest start no other value was (a *forward* zone). If all of them overlap, one
moment of the time that they share is enough for them (a *backward* zone, from the latest start to the earliest end).
A history is linearizable unless

* a value is read that nobody wrote, or whose write certainly failed;
* a read ends before the write of its value starts;
* two forward zones overlap;
* a backward zone lies inside a forward zone.

The initial value (``UNSET``, if no other is stated) was written before everything. A write of unknown outcome counts
only if its value was read. "Before" is strict: operations that touch in one nanosecond may be in either order.

All keys are judged at once: each has a stretch of time of its own, one after the other, so that zones of different keys
never meet. The cost is that of sorting the zones by their lower ends, in which order they nearly are already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.object_operations import (
    ALWAYS,
    FAIL,
    NEVER,
    OK,
    UNSET,
    WORTH_COMPILED,
    Operations,
    last_of,
    sequence_numbers,
)

READ: Final = 0
WRITE: Final = 1
LARGEST: Final = 2**61
"""Times of all keys, one after the other, stay below."""


@dataclass(frozen=True, slots=True)
class Values:
    """Which operations are of the same value of the same key."""

    ids: Numbers
    """For each operation."""
    written_by: Numbers
    """For each id the position of its write that did not certainly fail, −1 if it has none. What follows likewise."""
    failed_by: Numbers
    """The position of a write that certainly failed."""
    is_initial: Mask
    keys: Numbers
    """Numbers of the keys, from 0; −1 for an id that is of no value."""
    initial: int
    """The value before all writes."""

    @classmethod
    def of(cls, operations: Operations, initial: int = UNSET) -> Values:
        keys, key_count = sequence_numbers(operations.key)
        is_nil = operations.value == UNSET
        values = operations.value
        if is_nil.any():
            below = int(values[~is_nil].min(initial=1)) - 1
            values = np.where(is_nil, below, values)
        values, most = sequence_numbers(values)
        ids, count = sequence_numbers(keys * most + values) if key_count > 1 else (values, most)
        is_write, is_fail = operations.f == WRITE, operations.outcome == FAIL
        of_id = np.full(count, -1, dtype=np.int64)
        of_id[ids] = keys
        is_initial = np.zeros(count, dtype=np.bool_)
        is_initial[ids[(operations.value == initial) & ~is_write]] = True
        writes = np.flatnonzero(is_write & ~is_fail)
        failed = _latest_first(operations, np.flatnonzero(is_write & is_fail))
        written_by = last_of(ids[writes], writes, count)
        failed_by = last_of(ids[failed], failed, count)
        return cls(ids, written_by, failed_by, is_initial, of_id, initial)


def written_again(operations: Operations, values: Values) -> Numbers:
    """Positions of writes whose value another one writes, too, and of writes of the initial value."""
    writes = np.flatnonzero((operations.f == WRITE) & (operations.outcome != FAIL))
    last = values.written_by[values.ids[writes]]
    rewritten: Numbers = writes[(last != writes) | (operations.value[writes] == values.initial)]
    return rewritten


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads that no register can answer so; positions of operations."""

    unwritten: Numbers
    of_failed: Numbers
    too_early: Numbers
    possible: Numbers
    """All others."""


def reads(operations: Operations, values: Values) -> Reads:
    """Sort the successful reads by what is known of the writes of their values."""
    done = np.flatnonzero((operations.f == READ) & (operations.outcome == OK))
    ids = values.ids[done]
    write = values.written_by[ids]
    is_missing = (write < 0) & (operations.value[done] != values.initial)
    is_failed = is_missing & (values.failed_by[ids] >= 0)
    is_early = (write >= 0) & (operations.finish[done] < operations.start[write])
    return Reads(
        unwritten=done[is_missing & ~is_failed],
        of_failed=done[is_failed],
        too_early=done[is_early],
        possible=done[~is_missing & ~is_early],
    )


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Values that were current when another one must have been: one entry for each zone that others fall into."""

    throughout: Numbers
    """The id that was current from the earliest end of its operations to their latest start."""
    between: Numbers
    """The first id that must have been current in there, too."""
    count: Numbers
    """How many such there are."""


def conflicts(operations: Operations, values: Values, possible_reads: Numbers) -> Conflicts:
    """Return the zones that exclude each other, by the time of the first."""
    low, high = zones(operations, values, possible_reads)
    if len(low) >= WORTH_COMPILED and has_compiler():
        from nemesis.checkers.linearizable import zone_walk

        zone_conflicts = zone_walk.conflicts(low, high, values.keys, LARGEST)
        if zone_conflicts is not None:
            return Conflicts(*zone_conflicts)
    ids = np.flatnonzero((low != NEVER) | (high != ALWAYS))
    low, high = key_after_key(np.stack([low[ids], high[ids]]), values.keys[ids])
    is_forward = low < high
    bottom, top = np.minimum(low, high), np.maximum(low, high)
    permutation = np.argsort(2 * bottom + is_forward, kind="stable")
    ids, is_forward, bottom, top = (
        ids[permutation],
        is_forward[permutation],
        bottom[permutation],
        top[permutation],
    )
    reach = np.maximum.accumulate(np.where(is_forward, top, ALWAYS))
    must_be_past = np.where(is_forward, bottom, top)
    hits = np.flatnonzero(reach[:-1] > must_be_past[1:]) + 1
    owners = np.searchsorted(reach, reach[hits - 1])
    owner, first, count = np.unique(owners, return_index=True, return_counts=True)
    return Conflicts(ids[owner], ids[hits[first]], count.astype(np.int64))


def zones(
    operations: Operations, values: Values, possible_reads: Numbers
) -> tuple[Numbers, Numbers]:
    """For each id (earliest end, latest start); (``NEVER``, ``ALWAYS``) if it has no operations that count."""
    count = len(values.keys)
    is_read = np.zeros(count, dtype=np.bool_)
    low = np.full(count, NEVER, dtype=np.int64)
    high = np.full(count, ALWAYS, dtype=np.int64)
    if count >= WORTH_COMPILED and has_compiler():
        from nemesis.checkers.linearizable import zone_walk

        columns = (operations.start, operations.finish, operations.outcome)
        of_id = (values.written_by, values.is_initial)
        zone_walk.zones(values.ids, *columns, *of_id, possible_reads, is_read, low, high)
        return low, high
    is_read[values.ids[possible_reads]] = True
    writes = values.written_by[values.written_by >= 0]
    took_effect = (operations.outcome[writes] == OK) | is_read[values.ids[writes]]
    counted = np.concatenate([writes[took_effect], possible_reads])
    np.minimum.at(low, values.ids[counted], operations.finish[counted])
    np.maximum.at(high, values.ids[counted], operations.start[counted])
    low[values.is_initial & is_read] = ALWAYS
    return low, high


def key_after_key(times: Numbers, keys: Numbers) -> Numbers:
    """Rows of times, a column for each entry of ``keys``, moved so that each key's come after those of the key before.

    Inside a key they keep their order; ``ALWAYS`` comes first, ``NEVER`` last. What is returned is below ``LARGEST``.
    """
    numbers, count = sequence_numbers(keys)
    known = times[(times != ALWAYS) & (times != NEVER)]
    first, last = (int(known.min()), int(known.max())) if known.size else (0, 0)
    length = last - first + 3
    if length * count < LARGEST:
        moved = np.clip(times, first - 1, last + 1) - (first - 1)
    else:
        distinct, inverse = np.unique(times, return_inverse=True)
        moved, length = inverse.reshape(times.shape), len(distinct)
    shifted: Numbers = moved + numbers * length
    return shifted


def _latest_first(operations: Operations, positions: Numbers) -> Numbers:
    """These positions, sorted from the operation that was invoked last to the first."""
    latest_first: Numbers = positions[np.argsort(-operations.invoked[positions], kind="stable")]
    return latest_first
