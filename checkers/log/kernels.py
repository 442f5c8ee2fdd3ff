"""The loops over rows and records, compiled: what would take arrays a dozen passes takes one.

Imported by the tasks of large partitions only, for numba takes half a second to import. The kernels know nothing of
segments: arrays in, a code or a count out. ``UNSET`` in an array of numbers is an unset column.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from checkers.compiled import compiled
from checkers.log.rows import UNSET, Role

Array = np.ndarray[Any, Any]

FINE: Final = 0
UNTOLD: Final = 1
"""An operation has no number, value or position."""
OVERLAPS: Final = 2
"""A process does something else before its operation completes."""
DIFFERS: Final = 3
"""An operation completes as another one than was invoked."""

_FIRST: Final = int(Role.SEND)
_POLL: Final = int(Role.POLL)
_SEND_OK: Final = int(Role.SEND_OK)
_POLL_OK: Final = int(Role.POLL_OK)
_UNSET: Final = int(UNSET)


@compiled
def _differ(
    roles: Array, values: Array, acks: Array, offsets: Array, asked: int, answered: int
) -> bool:
    """Whether a completion says anything else than its invocation, of what it must repeat."""
    if (roles[asked] < _POLL) != (roles[answered] < _POLL):
        return True
    if roles[answered] < _POLL:
        return bool(values[asked] != values[answered] or acks[asked] != acks[answered])
    return bool(roles[answered] == _POLL_OK and offsets[asked] != offsets[answered])


@compiled
def follow(
    roles: Array,
    processes: Array,
    ops: Array,
    values: Array,
    acks: Array,
    offsets: Array,
    opened: Array,
    closed: Array,
    first: Array,
    highest: Array,
) -> tuple[int, int, bool]:
    """Follow each process through its operations: what is invoked must complete next, and as it was invoked.

    The last four have a place for each process, −1 at first. They are left with the rows of what is invoked here and
    not completed; of what completes that was not invoked (``closed``, −2 if the process did anything else first); of
    the first acknowledged send, and of the one at the highest offset. Returns a code, the number of acknowledged sends,
    and whether offsets of some producer do not grow.
    """
    acknowledged, falls = 0, False
    for i in range(len(roles)):
        role = roles[i]
        if role < _FIRST:
            continue
        process, is_send, asks = processes[i], role < _POLL, role & 3 == 0
        said = values[i] if is_send else offsets[i]
        if ops[i] == _UNSET or (said == _UNSET and (asks or is_send or role == _POLL_OK)):
            return UNTOLD, 0, False
        before = opened[process]
        if asks:
            if before != -1:
                return OVERLAPS, 0, False
            opened[process] = i
            if closed[process] == -1:
                closed[process] = -2
            continue
        if before == -1:
            if closed[process] != -1:
                return OVERLAPS, 0, False
            closed[process] = i
        else:
            if ops[before] != ops[i]:
                return OVERLAPS, 0, False
            if _differ(roles, values, acks, offsets, before, i):
                return DIFFERS, 0, False
            opened[process] = -1
        if role == _SEND_OK and acks[i] == -1 and offsets[i] >= 0:
            acknowledged += 1
            if first[process] == -1:
                first[process] = highest[process] = i
            elif offsets[i] > offsets[highest[process]]:
                highest[process] = i
            else:
                falls = True
    return FINE, acknowledged, falls


@compiled
def runs_on(flat: Array, lengths: Array, positions: Array) -> bool:
    """Whether each list has all numbers from its position on."""
    at = 0
    for i in range(len(lengths)):
        for step in range(lengths[i]):
            if flat[at + step] != positions[i] + step:
                return False
        at += lengths[i]
    return True


@compiled
def put(
    offsets: Array, values: Array, mark: int, low: int, held: Array, marks: Array, others: Array
) -> int:
    """Put values in their places, offsets less ``low``; those outside are left out. Returns how many found another
    value there; ``others`` is left with which.
    """
    count = 0
    for i in range(len(offsets)):
        place = offsets[i] - low
        if place < 0 or place >= len(held):
            continue
        if marks[place] == 0:
            held[place] = values[i]
        elif held[place] != values[i]:
            others[count] = i
            count += 1
        marks[place] |= mark
    return count


@compiled
def put_lists(
    positions: Array,
    lengths: Array,
    list_marks: Array,
    values: Array,
    low: int,
    held: Array,
    marks: Array,
    others: Array,
) -> int:
    """As ``put``, of lists each of which has a value for each offset from its position on, and a mark of its own."""
    count, at = 0, 0
    for i in range(len(lengths)):
        for step in range(lengths[i]):
            place = positions[i] + step - low
            if place < 0 or place >= len(held):
                continue
            if marks[place] == 0:
                held[place] = values[at + step]
            elif held[place] != values[at + step]:
                others[count] = at + step
                count += 1
            marks[place] |= list_marks[i]
        at += lengths[i]
    return count
