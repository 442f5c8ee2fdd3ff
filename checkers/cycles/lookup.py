"""Kernels that look writes up: tables of writes, one per key, and what walks over reads with them.

A kernel that calls another one lies in the same file with it (``nemesis.checkers.framework.compiled`` says why).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nemesis.checkers.cycles.transaction_rows import Elements
from nemesis.checkers.cycles.transactions import Mask
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled

NOTHING: Final = -1
"""What was read is the initial state: nil, or the empty list."""
GARBAGE: Final = -2
"""No transaction wrote what was read."""
UNREAD: Final = -3
"""It is unknown what was read, or it was not a read, or its key is ambiguous."""

_SPREAD: Final = np.int64(-7046029254386353131)
"""2**64 over the golden ratio, as an odd signed number: spreads successive values over a table."""


@compiled
def _slot(value: int, size: int) -> int:
    return int(((value * _SPREAD) >> np.int64(20)) & (size - 1))


@compiled
def find(key: int, value: int, values: Numbers, first_slot: Numbers, slots: Numbers) -> int:
    """The number of the write of this value to this key, ``GARBAGE`` without one."""
    first = first_slot[key]
    size = first_slot[key + 1] - first
    if size == 0:
        return GARBAGE
    slot = _slot(value, size)
    while slots[first + slot] >= 0:
        if values[slots[first + slot]] == value:
            return int(slots[first + slot])
        slot = (slot + 1) & (size - 1)
    return GARBAGE


@compiled
def indexed(key: Numbers, value: Numbers, first_slot: Numbers) -> tuple[Numbers, Mask]:
    slots = np.full(first_slot[-1], -1, np.int64)
    is_repeated = np.zeros(len(key), np.bool_)
    for write in range(len(key)):
        first = first_slot[key[write]]
        size = first_slot[key[write] + 1] - first
        slot = _slot(value[write], size)
        while slots[first + slot] >= 0:
            if value[slots[first + slot]] == value[write]:
                is_repeated[write] = True
                break
            slot = (slot + 1) & (size - 1)
        if not is_repeated[write]:
            slots[first + slot] = write
    return slots, is_repeated


@compiled
def last_found(
    is_read: Mask,
    key: Numbers,
    element_start: Numbers,
    count: Numbers,
    flat: Elements,
    values: Numbers,
    first_slot: Numbers,
    slots: Numbers,
) -> Numbers:
    last = np.full(len(is_read), UNREAD, np.int64)
    for read in range(len(is_read)):
        if is_read[read]:
            if count[read] == 0:
                last[read] = NOTHING
            else:
                element = flat[element_start[read] + count[read] - 1]
                last[read] = find(key[read], element, values, first_slot, slots)
    return last


@compiled
def placed(
    longest: Numbers,
    first: Numbers,
    element_start: Numbers,
    flat: Elements,
    values: Numbers,
    first_slot: Numbers,
    slots: Numbers,
    writes: int,
) -> tuple[Numbers, Numbers, Mask]:
    """For each element its write, for each write its position, and which keys have an element twice."""
    write = np.full(first[-1], GARBAGE, np.int64)
    position = np.full(writes, -1, np.int64)
    has_repeat = np.zeros(len(longest), np.bool_)
    for key in range(len(longest)):
        for index in range(first[key], first[key + 1]):
            element = flat[element_start[longest[key]] + index - first[key]]
            number = find(key, element, values, first_slot, slots)
            write[index] = number
            if number >= 0:
                if position[number] >= 0:
                    has_repeat[key] = True
                else:
                    position[number] = index
    return write, position, has_repeat


@compiled
def first_readers(
    is_read: Mask,
    is_prefix: Mask,
    key: Numbers,
    element_start: Numbers,
    count: Numbers,
    flat: Elements,
    values: Numbers,
    first_slot: Numbers,
    slots: Numbers,
    writes: int,
) -> tuple[Numbers, Mask]:
    reader = np.full(writes, -1, np.int64)
    has_garbage = np.zeros(len(is_read), np.bool_)
    covered = np.zeros(len(first_slot), np.int64)
    for read in range(len(is_read)):
        if not is_read[read]:
            continue
        begin = covered[key[read]] if is_prefix[read] else 0
        for i in range(begin, count[read]):
            write = find(key[read], flat[element_start[read] + i], values, first_slot, slots)
            if write < 0:
                has_garbage[read] = True
            elif reader[write] < 0:
                reader[write] = read
        if is_prefix[read]:
            covered[key[read]] = max(begin, count[read])
    return reader, has_garbage
