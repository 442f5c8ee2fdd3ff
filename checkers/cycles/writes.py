"""Who wrote a value: an index from (key, value) to the write, one small hash table per key.

The tables lie one after the other, in the order of the keys; keys that are used at the same time are near each other,
so that most look-ups stay in the processor's cache, whatever the values are.

The analysis rests on each value being written once per key. A key to which a value was written twice is *ambiguous*: it
is left out, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from checkers.columns import Numbers
from checkers.compiled import compiled
from checkers.cycles.rows import Elements
from checkers.cycles.transactions import UNKNOWN, WRITE, Mask, MicroOperations

NOTHING: Final = -1
"""What was read is the initial state: nil, or the empty list."""
GARBAGE: Final = -2
"""What was read has been written by nobody."""
UNREAD: Final = -3
"""Nobody knows what was read, or it was no read, or its key is ambiguous."""

_SPREAD: Final = np.int64(-7046029254386353131)
"""2**64 over the golden ratio, as an odd signed number: spreads successive values over a table."""


@dataclass(frozen=True, slots=True)
class Writes:
    """All writes, in the candidate order of their transactions, and how to find them."""

    micro: Numbers
    """The micro-operation of each write."""
    txn: Numbers
    key: Numbers
    value: Numbers
    is_last: Mask
    """Whether its transaction did not write to the key again."""
    first_slot: Numbers
    """Where the table of each key begins."""
    slots: Numbers
    """Numbers of writes, −1 where there is none."""
    repeated: Numbers
    """Writes whose value had been written to the key before."""
    ambiguous: Mask
    """For each key, whether there is such a write."""

    def __len__(self) -> int:
        return len(self.micro)

    @classmethod
    def of(cls, micro: MicroOperations) -> Writes:
        chosen = np.flatnonzero(micro.code == WRITE)
        key = micro.key[chosen]
        value = micro.flat[micro.at[chosen]].astype(np.int64)
        sizes = np.bincount(key, minlength=len(micro.keys))
        first_slot = np.concatenate(([0], np.cumsum(_powers_of_two(2 * sizes))))
        slots, is_repeated = _indexed(key, value, first_slot)
        repeated = np.flatnonzero(is_repeated)
        ambiguous = np.zeros(len(micro.keys), dtype=np.bool_)
        ambiguous[key[repeated]] = True
        return cls(
            micro=chosen,
            txn=micro.txn[chosen],
            key=key,
            value=value,
            is_last=micro.is_last_write[chosen],
            first_slot=first_slot,
            slots=slots,
            repeated=repeated,
            ambiguous=ambiguous,
        )

    def last_read(self, micro: MicroOperations) -> Numbers:
        """For each micro-operation the write of the last element that it read: a number of a write, or ``NOTHING``,
        ``GARBAGE`` or ``UNREAD``.
        """
        is_read = (micro.code != WRITE) & (micro.count > UNKNOWN) & ~self.ambiguous[micro.key]
        return _found_last(
            is_read,
            micro.key,
            micro.at,
            micro.count,
            micro.flat,
            self.value,
            self.first_slot,
            self.slots,
        )

    def own(self, micro: MicroOperations, last_read: Numbers) -> Mask:
        """For each micro-operation, whether the last element that it read was written by its own transaction."""
        own = np.zeros(len(micro), dtype=np.bool_)
        reads = np.flatnonzero(last_read >= 0)
        own[reads] = self.txn[last_read[reads]] == micro.txn[reads]
        return own

    def find(self, key: int, value: int) -> int:
        """Return the number of the write of this value to this key, ``GARBAGE`` if there is none."""
        return int(find(key, value, self.value, self.first_slot, self.slots))


def _powers_of_two(numbers: Numbers) -> Numbers:
    """The smallest powers of two that are not below these numbers, 0 for 0."""
    powers = 1 << np.ceil(np.log2(np.maximum(numbers, 1))).astype(np.int64)
    return np.where(numbers > 0, powers, 0)


@compiled
def _slot(value: int, size: int) -> int:
    return int(((value * _SPREAD) >> np.int64(20)) & (size - 1))


@compiled
def find(key: int, value: int, values: Numbers, first_slot: Numbers, slots: Numbers) -> int:
    """The number of the write of this value to this key, ``GARBAGE`` if there is none."""
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
def _indexed(key: Numbers, value: Numbers, first_slot: Numbers) -> tuple[Numbers, Mask]:
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
def _found_last(
    is_read: Mask,
    key: Numbers,
    at: Numbers,
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
                element = flat[at[read] + count[read] - 1]
                last[read] = find(key[read], element, values, first_slot, slots)
    return last
