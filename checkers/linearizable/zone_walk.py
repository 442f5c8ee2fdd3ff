"""Zones made and compared in compiled walks: what ``register_zones`` does in passes of numpy, which wait for memory.

To import this module takes more than half a second, for numba's sake: it is for registers that are worth it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit, types

from nemesis.checkers.framework.segment import Mask, Numbers
from nemesis.checkers.linearizable.object_operations import ALWAYS, NEVER, OK, Codes

MOST_OWNERS: Final = 4096
"""Zones into which others fall; of more the walk gives up."""
_Mask = types.Array(types.boolean, 1, "A", readonly=True)
_Words = types.Array(types.int8, 1, "A", readonly=True)
_Given = types.Array(types.int64, 1, "A", readonly=True)
_Taken = types.Array(types.int64, 1, "C")


def conflicts(
    low: Numbers, high: Numbers, keys: Numbers, largest: int
) -> tuple[Numbers, Numbers, Numbers] | None:
    """Return (the id that was current throughout, the first that must have been in between, how many such) of zones
    (earliest end, latest start); None if the times of all keys, one after the other, do not stay below ``largest``.
    """
    count, first, last, lowest, highest = _extent(low, high, keys)
    length = last - first + 3
    if length * (highest - lowest + 1) >= largest:
        return None
    ids, sort_keys, tops = (np.empty(count, dtype=np.int64) for _ in range(3))
    _line_up(low, high, keys, first, last, lowest, ids, sort_keys, tops)
    permutation = np.argsort(sort_keys, kind="stable")
    conflicts = np.empty((3, MOST_OWNERS), dtype=np.int64)
    owners = _compare(permutation, sort_keys, tops, conflicts)
    if owners < 0:
        return None
    throughout, between, counts = conflicts[:, :owners]
    return ids[permutation[throughout]], ids[permutation[between]], counts


@njit(  # type: ignore[untyped-decorator]
    types.void(*[_Given] * 3, _Words, _Given, _Mask, _Given, types.boolean[::1], *[_Taken] * 2),
    cache=True,
    nogil=True,
)
def zones(
    ids: Numbers,
    start: Numbers,
    finish: Numbers,
    outcome: Codes,
    written_by: Numbers,
    is_initial: Mask,
    possible_reads: Numbers,
    is_read: Mask,
    low: Numbers,
    high: Numbers,
) -> None:
    """Fill ``is_read``, ``low`` and ``high``, which say of each id that there is nothing yet."""
    for read in possible_reads:
        value_id = ids[read]
        is_read[value_id] = True
        low[value_id] = min(low[value_id], finish[read])
        high[value_id] = max(high[value_id], start[read])
    for value_id in range(len(low)):
        write = written_by[value_id]
        if write >= 0 and (is_read[value_id] or outcome[write] == OK):
            low[value_id] = min(low[value_id], finish[write])
            high[value_id] = max(high[value_id], start[write])
        if is_initial[value_id] and is_read[value_id]:
            low[value_id] = ALWAYS


@njit(types.UniTuple(types.int64, 5)(*[_Given] * 3), cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _extent(low: Numbers, high: Numbers, keys: Numbers) -> tuple[int, int, int, int, int]:
    """How many zones there are, the first and the last known time, the lowest and the highest key."""
    count, first, last, lowest, highest = 0, NEVER, ALWAYS, NEVER, ALWAYS
    for value_id in range(len(low)):
        if low[value_id] == NEVER and high[value_id] == ALWAYS:
            continue
        count += 1
        lowest, highest = min(lowest, keys[value_id]), max(highest, keys[value_id])
        for time in (low[value_id], high[value_id]):
            if time != ALWAYS and time != NEVER:
                first, last = min(first, time), max(last, time)
    if first > last:
        first, last = 0, 0
    if lowest > highest:
        lowest, highest = 0, 0
    return count, first, last, lowest, highest


@njit(types.void(*[_Given] * 3, *[types.int64] * 3, *[_Taken] * 3), cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _line_up(
    low: Numbers,
    high: Numbers,
    keys: Numbers,
    first: int,
    last: int,
    lowest: int,
    ids: Numbers,
    sort_keys: Numbers,
    tops: Numbers,
) -> None:
    """Fill ids of zones, twice their lower ends (and one more for forward zones), and their upper ends, times of each
    key moved behind those of the key before.
    """
    count = 0
    for value_id in range(len(low)):
        if low[value_id] == NEVER and high[value_id] == ALWAYS:
            continue
        moved = (keys[value_id] - lowest) * (last - first + 3) - (first - 1)
        begins = min(max(low[value_id], first - 1), last + 1) + moved
        ends = min(max(high[value_id], first - 1), last + 1) + moved
        ids[count] = value_id
        sort_keys[count] = 2 * min(begins, ends) + (1 if begins < ends else 0)
        tops[count] = max(begins, ends)
        count += 1


@njit(types.int64(*[_Given] * 3, types.int64[:, ::1]), cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _compare(permutation: Numbers, sort_keys: Numbers, tops: Numbers, conflicts: Numbers) -> int:
    """Fill (owner, first in between, count), indices in ``permutation``; return how many owners, −1 if too many."""
    reach, owner, owners = ALWAYS, -1, 0
    for index in range(len(permutation)):
        zone = permutation[index]
        is_forward = sort_keys[zone] % 2 == 1
        must_be_past = sort_keys[zone] // 2 if is_forward else tops[zone]
        if reach > must_be_past:
            if owners and conflicts[0, owners - 1] == owner:
                conflicts[2, owners - 1] += 1
            elif owners == conflicts.shape[1]:
                return -1
            else:
                conflicts[0, owners], conflicts[1, owners], conflicts[2, owners] = owner, index, 1
                owners += 1
        if is_forward and tops[zone] > reach:
            reach, owner = tops[zone], index
    return owners
