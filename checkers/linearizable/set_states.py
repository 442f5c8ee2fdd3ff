"""What became of each element of each set, as arrays: who added it, which reads returned it, which did not.

No matrix of elements and reads is made. A set's reads are ranked by their beginnings; the last read that lacks an
element is found from the end of the ranks: it is the first that is missing among those that returned it.
"""

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
from nemesis.checkers.linearizable.object_operations import ALWAYS, NEVER, OK, Operations

FS: Final = ("add", "read")
ADD, READ = range(len(FS))


@dataclass(frozen=True, slots=True)
class SetStates:
    """One entry for each element that was added or returned, by key and value; positions of operations, or ``NONE``."""

    key: Numbers
    value: Numbers
    puts: Puts
    """The adds."""
    first_present: Numbers
    """The read that returned it and ended first, ..."""
    last_present: Numbers
    """... or last."""
    newest_present: Numbers
    """Of the reads that returned it the one that began last."""
    last_absent: Numbers
    """Of the reads that did not return it the one that began last."""
    is_stable: Mask
    """In a read that began after all reads that lack it."""
    is_lost: Mask
    is_perhaps_lost: Mask
    """The read that began last lacks it, and overlaps a read that returned it."""
    is_stale: Mask
    """A later read lacked it. The newest read has it."""
    is_undecided: Mask
    """Known, not in the newest read, and no read began after it was known."""
    is_unread: Mask
    """Added, neither returned nor lost: no read began afterwards."""
    is_recovered: Mask
    """Returned, though no add is known to have succeeded."""
    returned: Numbers
    """For each entry of an answer its element, and the read that returned it. What follows are positions of these."""
    returned_by: Numbers
    unexpected: Numbers
    """The first entry of each element that cannot have been returned."""
    twice: Numbers
    """The second entry of an element in one answer."""

    @classmethod
    def of(cls, operations: Operations, lists: Listed) -> SetStates:
        adds = np.flatnonzero(operations.f == ADD)
        by, values = answers(operations, lists)
        elements = numbered(
            (operations.key[adds], operations.value[adds]), (operations.key[by], values)
        )
        of_add, of_answer = elements.ids
        count = len(elements)
        start, finish = operations.start, operations.finish
        puts = Puts.of(operations, adds, of_add, count)
        added, attempted = puts.succeeded, puts.attempted
        first_present = first_of(of_answer, finish[by], by, count)
        last_present = first_of(of_answer, -finish[by], by, count)
        newest_present = first_of(of_answer, -start[by], by, count)
        last_absent = _last_absent(operations, elements.key, of_answer, by)
        acknowledged = values_at(finish, added, NEVER)
        is_known = (added != NONE) | (first_present != NONE)
        known = np.minimum(acknowledged, values_at(finish, first_present, NEVER))
        absent_since = values_at(start, last_absent, ALWAYS)
        gone_after = np.where(
            last_present != NONE, values_at(finish, last_present, NEVER), acknowledged
        )
        is_lost = is_known & (absent_since > gone_after)
        is_later = is_known & (absent_since > known)
        present_since = values_at(start, newest_present, ALWAYS)
        is_returned = newest_present != NONE
        is_stable = is_returned & ((last_absent == NONE) | (present_since > absent_since))
        too_early = finish[by] < values_at(start, attempted, NEVER)[of_answer]
        wrong = np.flatnonzero(too_early)
        _, entry = np.unique(of_answer[wrong], return_index=True)
        return cls(
            key=elements.key,
            value=elements.value,
            puts=puts,
            first_present=first_present,
            last_present=last_present,
            newest_present=newest_present,
            last_absent=last_absent,
            is_stable=is_stable,
            is_lost=is_lost,
            is_perhaps_lost=is_later & ~is_lost & ~is_stable,
            is_stale=is_later & is_stable,
            is_undecided=is_known & ~is_later & ~is_stable,
            is_unread=(added != NONE) & (first_present == NONE) & ~is_lost,
            is_recovered=(added == NONE) & (attempted != NONE) & (first_present != NONE),
            returned=of_answer,
            returned_by=by,
            unexpected=wrong[entry],
            twice=_twice(of_answer, by),
        )


def _last_absent(
    operations: Operations, keys: Numbers, returned: Numbers, returned_by: Numbers
) -> Numbers:
    """For each element the read of its set that lacks it and began last."""
    reads = np.flatnonzero((operations.f == READ) & (operations.outcome == OK))
    ordered = reads[
        np.lexsort((operations.completed[reads], operations.start[reads], operations.key[reads]))
    ]
    position_of = np.full(len(operations), NONE, dtype=np.int64)
    position_of[ordered] = np.arange(len(ordered))
    sorted_keys = operations.key[ordered]
    first = np.searchsorted(sorted_keys, keys, side="left")
    end = np.searchsorted(sorted_keys, keys, side="right")
    reads_count = max(len(ordered), 1)
    pair = np.unique(returned * reads_count + (reads_count - 1 - position_of[returned_by]))
    element, rank = pair // reads_count, reads_count - 1 - pair % reads_count
    starts = np.searchsorted(element, element, side="left")
    back = np.arange(len(element)) - starts
    is_in_run = rank == end[element] - 1 - back
    run = np.bincount(element[is_in_run], minlength=len(keys))
    last = end - 1 - run
    if not len(ordered):
        return np.full(len(keys), NONE, dtype=np.int64)
    return np.where(last >= first, ordered[np.maximum(last, 0)], NONE)


def _twice(returned: Numbers, returned_by: Numbers) -> Numbers:
    permutation = np.lexsort((returned, returned_by))
    is_same = (np.diff(returned[permutation]) == 0) & (np.diff(returned_by[permutation]) == 0)
    again = np.flatnonzero(is_same) + 1
    is_third = np.diff(again, prepend=NONE) == 1
    repeats: Numbers = permutation[again[~is_third]]
    return repeats
