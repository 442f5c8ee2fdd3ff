"""The loops over rows and records, compiled: what would take arrays a dozen passes takes one.

Imported by the tasks of large partitions only, for numba takes half a second to import. The kernels know nothing of
segments: arrays in, a code or a count out. ``UNSET`` in an array of numbers is an unset column.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

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


class Followed(NamedTuple):
    """What ``follow`` has seen."""

    code: int
    acknowledged: int
    falls: bool
    """Whether offsets of some producer do not grow."""
    is_plain: bool
    """Whether the acknowledged sends are the rows that have an offset and a value."""
    least: int
    """The smallest value, and the largest; of no values the largest is the smaller one."""
    most: int


_OP, _SAID, _ACKS, _HIGHEST = 0, 1, 2, 3


@compiled
def _is_told(role: int, op: int, said: int) -> bool:
    """Whether an operation has a number, and says its value or its position where it must."""
    must_say = role < _POLL or role in (_POLL, _POLL_OK)
    return op != _UNSET and (said != _UNSET or not must_say)


@compiled
def _overlaps(asks: bool, opened: int, closed: int, invoked: Array, op: int) -> bool:
    """Whether a process does this before another operation completes."""
    if asks:
        return opened != -1
    return bool(invoked[_OP] != op) if opened != -1 else closed != -1


@compiled
def _differs(role: int, invoked: Array, said: int, acks: int) -> bool:
    """Whether a completion says anything else than its invocation, of what it must repeat."""
    if role < _POLL:
        return bool(invoked[_SAID] != said or invoked[_ACKS] != acks)
    return bool(role == _POLL_OK and invoked[_SAID] != said)


@compiled
def follow(
    roles: Array,
    processes: Array,
    done: Array,
    ops: Array,
    values: Array,
    acks: Array,
    offsets: Array,
    opened: Array,
    closed: Array,
    first: Array,
    highest: Array,
) -> Followed:
    """Follow each process through its operations: what is invoked must complete next, and as it was invoked.

    The last four have a place for each process, −1 at first. They are left with the rows of what is invoked
    here and not completed; of what completes that was not invoked (``closed``, −2 if the process did anything else
    first); of the first acknowledged send, and of the one at the highest offset. ``done`` is left with which rows
    acknowledge a send.
    """
    acknowledged, falls, is_plain = 0, False, True
    least, most = np.iinfo(np.int64).max, _UNSET
    # What each process has said last, so that nothing is looked for in the rows before.
    last = np.zeros((len(opened), 4), dtype=np.int64)
    for i in range(len(roles)):
        role, value, offset = roles[i], values[i], offsets[i]
        done[i] = role == _SEND_OK and acks[i] == -1 and offset >= 0
        is_plain &= done[i] == (offset >= 0 and value != _UNSET)
        if value != _UNSET:
            least, most = min(least, value), max(most, value)
        if role < _FIRST:
            continue
        process, is_send, asks = processes[i], role < _POLL, role & 3 == 0
        said = value if is_send else offset
        if not _is_told(role, ops[i], said):
            return Followed(UNTOLD, 0, False, False, least, most)
        before, mine = opened[process], last[process]
        if _overlaps(asks, before, closed[process], mine, ops[i]):
            return Followed(OVERLAPS, 0, False, False, least, most)
        if asks:
            opened[process] = i
            mine[_OP], mine[_SAID], mine[_ACKS] = ops[i], said, acks[i]
            if closed[process] == -1:
                closed[process] = -2
            continue
        if before == -1:
            closed[process] = i
        elif (roles[before] < _POLL) != is_send or _differs(role, mine, said, acks[i]):
            return Followed(DIFFERS, 0, False, False, least, most)
        else:
            opened[process] = -1
        if done[i]:
            acknowledged += 1
            if first[process] == -1:
                first[process] = i
            elif offset <= mine[_HIGHEST]:
                falls = True
                continue
            highest[process], mine[_HIGHEST] = i, offset
    return Followed(FINE, acknowledged, falls, is_plain, least, most)


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
    chosen: Array,
    offsets: Array,
    values: Array,
    mark: int,
    low: int,
    held: Array,
    marks: Array,
    others: Array,
) -> int:
    """Put the chosen values in their places, offsets less ``low``; those outside are left out. Returns how many found
    another value there; ``others`` is left with which.
    """
    count = 0
    for i in range(len(chosen)):
        place = offsets[i] - low
        if not chosen[i] or place < 0 or place >= len(held):
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
