"""The loops over rows and records, compiled: what would take arrays a dozen passes takes one.

Imported by the tasks of large partitions only, for numba takes half a second to import. The kernels know nothing of
segments: arrays in, a code or a count out. ``UNSET`` in an array of numbers is an unset column.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from nemesis.checkers.framework.compiled import compiled
from nemesis.checkers.log.partition_rows import UNSET, Role

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
    first: int
    """The smallest offset of an acknowledged send, and the largest; as with the values."""
    last: int
    answers: int
    """How many polls were answered."""


@compiled
def _must_say(role: int) -> bool:
    """Whether an operation must say its value or its position."""
    return role < _POLL or role in (_POLL, _POLL_OK)


@compiled
def _fits(
    role: int, asked: int, closed: int, is_same: bool, repeats: bool, repeats_acks: bool
) -> int:
    """Whether a process may do this, having ``asked`` for something that is not completed (a role, or −1)."""
    if role & 3 == 0:
        return FINE if asked == -1 else OVERLAPS
    if asked == -1:
        return FINE if closed == -1 else OVERLAPS
    if not is_same:
        return OVERLAPS
    is_send = role < _POLL
    must_repeat = is_send or role == _POLL_OK
    if (asked < _POLL) != is_send or (must_repeat and not repeats):
        return DIFFERS
    return DIFFERS if is_send and not repeats_acks else FINE


@compiled
def follow(
    roles: Array,
    processes: Array,
    ops: Array,
    has_op: Array,
    values: Array,
    has_value: Array,
    acks: Array,
    has_acks: Array,
    offsets: Array,
    has_offset: Array,
    done: Array,
    answered: Array,
    opened: Array,
    closed: Array,
    first: Array,
    highest: Array,
) -> Followed:
    """Follow each process through its operations: what is invoked must complete next, and as it was invoked.

    A column is what it says and which rows do. The last four have a place for each process, −1 at first. They are left
    with the rows of what is invoked here and not completed; of what completes that was not invoked (``closed``, −2 if
    the process did anything else first); of the first acknowledged send, and of the one at the highest offset. ``done``
    is left with which rows acknowledge a send, ``answered`` begins with the rows that answer a poll.
    """
    acknowledged, answers, falls, is_plain = 0, 0, False, True
    least, most = np.iinfo(np.int64).max, _UNSET
    lowest, largest = np.iinfo(np.int64).max, _UNSET
    code = FINE
    # What each process has said last, so that nothing is looked for in the rows before.
    asked, said_last, acks_last, top = (
        np.zeros(len(opened), dtype=np.int64),
        np.zeros(len(opened), dtype=np.int64),
        np.zeros(len(opened), dtype=np.int64),
        np.zeros(len(opened), dtype=np.int64),
    )
    for i in range(len(roles)):
        role = roles[i]
        value = values[i] if has_value[i] else _UNSET
        offset = offsets[i] if has_offset[i] else _UNSET
        promised = acks[i] if has_acks[i] else _UNSET
        is_done = role == _SEND_OK and promised == -1 and offset >= 0
        done[i] = is_done
        is_plain &= is_done == (offset >= 0 and value != _UNSET)
        if value != _UNSET:
            least, most = min(least, value), max(most, value)
        if role < _FIRST:
            continue
        process, is_send, asks = processes[i], role < _POLL, role & 3 == 0
        said = value if is_send else offset
        if not has_op[i] or (said == _UNSET and _must_say(role)):
            code = UNTOLD
            break
        op, before = ops[i], opened[process]
        code = _fits(
            role,
            roles[before] if before != -1 else -1,
            closed[process],
            asked[process] == op,
            said_last[process] == said,
            acks_last[process] == promised,
        )
        if code != FINE:
            break
        if asks:
            opened[process] = i
            asked[process], said_last[process], acks_last[process] = op, said, promised
            if closed[process] == -1:
                closed[process] = -2
            continue
        opened[process] = -1
        if before == -1:
            closed[process] = i
        if is_done:
            acknowledged += 1
            lowest, largest = min(lowest, offset), max(largest, offset)
            if first[process] == -1:
                first[process] = i
            elif offset <= top[process]:
                falls = True
                continue
            highest[process], top[process] = i, offset
        elif role == _POLL_OK:
            answered[answers] = i
            answers += 1
    return Followed(code, acknowledged, falls, is_plain, least, most, lowest, largest, answers)


@compiled
def runs_on(flat: Array, lengths: Array, positions: Array) -> bool:
    """Whether each list has all numbers from its position on."""
    start = 0
    for i in range(len(lengths)):
        for step in range(lengths[i]):
            if flat[start + step] != positions[i] + step:
                return False
        start += lengths[i]
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
    """Put the chosen values at their indices, offsets less ``low``; those outside are left out. Returns how many found
    another value there; ``others`` is left with which.
    """
    count = 0
    for i in range(len(chosen)):
        index = offsets[i] - low
        if not chosen[i] or index < 0 or index >= len(held):
            continue
        if marks[index] == 0:
            held[index] = values[i]
        elif held[index] != values[i]:
            others[count] = i
            count += 1
        marks[index] |= mark
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
    count, start = 0, 0
    for i in range(len(lengths)):
        for step in range(lengths[i]):
            index = positions[i] + step - low
            if index < 0 or index >= len(held):
                continue
            if marks[index] == 0:
                held[index] = values[start + step]
            elif held[index] != values[start + step]:
                others[count] = start + step
                count += 1
            marks[index] |= list_marks[i]
        start += lengths[i]
    return count


@compiled
def spread(
    values: Array,
    marks: Array,
    least: int,
    is_taken: Array,
    zone_bits: int,
    first_zone: int,
    lows: Array,
    highs: Array,
) -> bool:
    """Whether no value stands at two of the marked indices. ``is_taken`` has an element for each value from ``least``
    on, 0 at first; ``lows`` and ``highs`` are left with the smallest and the largest value of each zone.
    """
    for index in range(len(values)):
        if marks[index] == 0:
            continue
        value = values[index]
        if is_taken[value - least] != 0:
            return False
        is_taken[value - least] = 1
        zone = (value >> zone_bits) - first_zone
        lows[zone], highs[zone] = min(lows[zone], value), max(highs[zone], value)
    return True


@compiled
def bounds(values: Array, marks: Array) -> tuple[int, int]:
    """The smallest and the largest value at the marked indices; of none the largest is the smaller one."""
    least, most = np.iinfo(np.int64).max, _UNSET
    for index in range(len(values)):
        if marks[index] != 0:
            least, most = min(least, values[index]), max(most, values[index])
    return least, most
