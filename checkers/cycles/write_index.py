"""Who wrote a value: an index from (key, value) to the write, one small hash table per key.

The tables lie one after the other, in the order of the keys; keys that are used at the same time are near each other,
so that most look-ups stay in the processor's cache, for all values.

The analysis rests on each value being written once per key. A key to which a value was written twice is *ambiguous*: it
is left out, and reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.lookup import find, indexed, last_found
from nemesis.checkers.cycles.transactions import UNKNOWN, WRITE, Mask, MicroOperations
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.initial_values import NIL


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
    """Numbers of writes, −1 without one."""
    repeated: Numbers
    """Writes whose value had been written to the key before, or is its initial value."""
    ambiguous: Mask
    """For each key, whether there is such a write."""

    def __len__(self) -> int:
        return len(self.micro)

    @classmethod
    def of(cls, micro: MicroOperations, initial: int = NIL) -> Writes:
        chosen = np.flatnonzero(micro.code == WRITE)
        key = micro.key[chosen]
        value = micro.flat[micro.element_start[chosen]].astype(np.int64)
        sizes = np.bincount(key, minlength=len(micro.keys))
        first_slot = np.concatenate(([0], np.cumsum(_powers_of_two(2 * sizes))))
        slots, is_repeated = indexed(key, value, first_slot)
        repeated = np.flatnonzero(is_repeated | (value == initial))
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
        return last_found(
            is_read,
            micro.key,
            micro.element_start,
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
        """Return the number of the write of this value to this key, ``GARBAGE`` without one."""
        return int(find(key, value, self.value, self.first_slot, self.slots))


def _powers_of_two(numbers: Numbers) -> Numbers:
    """The smallest powers of two that are not below these numbers, 0 for 0."""
    powers = 1 << np.ceil(np.log2(np.maximum(numbers, 1))).astype(np.int64)
    return np.where(numbers > 0, powers, 0)
