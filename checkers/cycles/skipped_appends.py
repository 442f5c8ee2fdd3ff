"""A list with an append of a transaction, but without an earlier one of that transaction.

No state of the transaction is such a list: it read part of what the transaction did (wr) and missed another part (rw).
So read atomic forbids the list, and all stronger models do. No choice of version orders shows it, because
``orders.problem`` has one version of a key for each transaction.

Only the last element matters. If another transaction appended it, the append that is missing came after that one
(``list_edges``), and one of the same transaction before: that is a G0. A reader's own appends are ``internal``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.transactions import Mask, MicroOperations
from nemesis.checkers.cycles.version_orders import ListOrders
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers


@dataclass(frozen=True, slots=True)
class SkippedAppend:
    """A read, the write of the last element that it returned, and an earlier write of the same transaction."""

    read: int
    shown: int
    missing: int


def skipped_append(
    micro: MicroOperations,
    writes: Writes,
    last_read: Numbers,
    own: Mask,
    list_orders: ListOrders,
    read_index: ReadIndex,
) -> SkippedAppend | None:
    """Return the first read of such a list."""
    is_unread = (list_orders.position < 0) & list_orders.ordered[writes.key]
    missing = np.flatnonzero(is_unread & ~writes.is_last & read_index.committed[writes.txn])
    keys = len(micro.keys)
    # Writes stand in the order of their transactions, so the first of each pair is its earliest append.
    pairs, first = np.unique(writes.txn[missing] * keys + writes.key[missing], return_index=True)
    reads = np.flatnonzero(list_orders.is_prefix & (last_read >= 0) & ~own)
    shown = last_read[reads]
    pair = writes.txn[shown] * keys + writes.key[shown]
    position = np.searchsorted(pairs, pair)
    is_pair = np.append(pairs, -1)[position] == pair
    reads, shown = reads[is_pair], shown[is_pair]
    earliest = missing[first[position[is_pair]]]
    skipping = np.flatnonzero(writes.micro[earliest] < writes.micro[shown])
    if not len(skipping):
        return None
    chosen = int(skipping[0])
    return SkippedAppend(int(reads[chosen]), int(shown[chosen]), int(earliest[chosen]))
