"""Version orders of lists: the longest list that anybody read of a key, of which all others have to be prefixes.

A list is its own history: who reads [3, 1, 4] knows that 3 was appended before 1, and 1 before 4. So the longest read
of a key is the order of its versions, except for what was appended later and read by no transaction.

The appends of one transaction to a key stand in the order in which it made them; a list that shows another order
contradicts its writer (``reversed_appends``).

Two lists of which neither begins with the other, or an element that stands in a list twice, leave no order
(``ordered``): then what was read from whom is still known, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.lookup import placed
from nemesis.checkers.cycles.transaction_rows import Elements
from nemesis.checkers.cycles.transactions import READ, UNKNOWN, Mask, MicroOperations
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled


@dataclass(frozen=True, slots=True)
class ListOrders:
    """The elements of all keys' longest lists, one key after the other. Ambiguous keys have none."""

    longest: Numbers
    """For each key the longest read, −1 without one."""
    first: Numbers
    """For each key where its elements begin; one more than there are keys."""
    write: Numbers
    """For each element its write, or ``GARBAGE``."""
    position: Numbers
    """For each write where it stands, −1 if no longest list has it."""
    is_prefix: Mask
    """For each micro-operation, whether it is a read of the beginning of its key's longest list."""
    repeats: Numbers
    """Reads that have an element twice."""
    ordered: Mask
    """For each key, whether all reads agree on one order, in which nothing stands twice."""

    def reversed_appends(self, writes: Writes) -> Numbers:
        """Return the appends that stand before one which their transaction made to the same key before them."""
        wrote_again = np.zeros(len(writes) and int(writes.txn[-1]) + 1, dtype=np.bool_)
        wrote_again[writes.txn[~writes.is_last]] = True
        chosen = np.flatnonzero(
            wrote_again[writes.txn] & (self.position >= 0) & self.ordered[writes.key]
        )
        chosen = chosen[np.lexsort((chosen, writes.key[chosen], writes.txn[chosen]))]
        before, after = chosen[:-1], chosen[1:]
        one_list = (writes.txn[before] == writes.txn[after]) & (
            writes.key[before] == writes.key[after]
        )
        reversed_appends: Numbers = after[one_list & (self.position[after] < self.position[before])]
        return reversed_appends

    @classmethod
    def of(cls, micro: MicroOperations, writes: Writes) -> ListOrders:
        is_read = (micro.code == READ) & (micro.count > UNKNOWN) & ~writes.ambiguous[micro.key]
        longest = _longest(is_read, micro.key, micro.count, len(micro.keys))
        length = np.where(longest >= 0, micro.count[longest], 0)
        first = np.concatenate(([0], np.cumsum(length)))
        write, position, has_repeat = placed(
            longest,
            first,
            micro.element_start,
            micro.flat,
            writes.value,
            writes.first_slot,
            writes.slots,
            len(writes),
        )
        is_prefix = _agreeing(
            is_read, longest, micro.key, micro.element_start, micro.count, micro.flat
        )
        others = np.flatnonzero(is_read & ~is_prefix)
        repeats = [read for read in others.tolist() if _has_repeat(micro.elements(read))]
        repeats += longest[has_repeat].tolist()
        ordered = ~writes.ambiguous & ~has_repeat
        ordered[micro.key[others]] = False
        return cls(
            longest=longest,
            first=first,
            write=write,
            position=position,
            is_prefix=is_prefix,
            repeats=np.array(sorted(repeats), dtype=np.int64),
            ordered=ordered,
        )


def _has_repeat(elements: list[int]) -> bool:
    return len(set(elements)) < len(elements)


@compiled
def _longest(is_read: Mask, key: Numbers, count: Numbers, keys: int) -> Numbers:
    longest = np.full(keys, -1, np.int64)
    for read in range(len(is_read)):
        if is_read[read]:
            best = longest[key[read]]
            if best < 0 or count[read] > count[best]:
                longest[key[read]] = read
    return longest


@compiled
def _agreeing(
    is_read: Mask,
    longest: Numbers,
    key: Numbers,
    element_start: Numbers,
    count: Numbers,
    flat: Elements,
) -> Mask:
    is_prefix = is_read.copy()
    for read in range(len(is_read)):
        if is_read[read]:
            start, begin = element_start[read], element_start[longest[key[read]]]
            for i in range(count[read]):
                if flat[start + i] != flat[begin + i]:
                    is_prefix[read] = False
                    break
    return is_prefix
