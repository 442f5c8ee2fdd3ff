"""The dependencies of lists, from the orders of their versions.

The version after which a list was read is the write of its last element. Versions are those of committed transactions;
what a failed one left in a list is passed over (it is reported as G1a). A read of a transaction's own append says
nothing about others: whom the transaction itself came after is known from the list.

Further appends of the transaction whose append was read last are passed over: to see some of them and not the others
is G1b, and no dependency.

A committed append that no transaction has read came after the longest list that was read of its key: the list
did not have it, and elements never leave a list.
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.edges import RW, WR, WW, Edges, later_writes
from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.transactions import Mask, MicroOperations, Transactions
from nemesis.checkers.cycles.version_orders import ListOrders
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled


def list_edges(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    last_read: Numbers,
    own: Mask,
    list_orders: ListOrders,
    read_index: ReadIndex,
) -> Edges:
    """Return all ww, wr and rw edges between committed transactions."""
    is_live = read_index.committed[writes.txn]
    standing = _standing(list_orders, is_live)
    next_live = _next_live(standing, list_orders.first)
    before, after = _neighbours(standing)
    same_key = writes.key[before] == writes.key[after]
    same_key &= list_orders.ordered[writes.key[after]]
    before, after = before[same_key], after[same_key]
    parts = [Edges.of(WW, writes.txn[before], writes.txn[after], writes.micro[after])]
    reads = np.flatnonzero(last_read >= 0)
    reads = reads[is_live[last_read[reads]]]
    parts.append(Edges.of(WR, writes.txn[last_read[reads]], micro.txn[reads], reads))
    reads = np.flatnonzero(
        list_orders.is_prefix & list_orders.ordered[micro.key] & (last_read >= NOTHING)
    )
    reads = reads[~own[reads]]
    following = _following(
        reads, micro.key, micro.count, last_read, writes.txn, list_orders.first, next_live
    )
    replaced = following >= 0
    parts.append(
        Edges.of(RW, micro.txn[reads[replaced]], writes.txn[following[replaced]], reads[replaced])
    )
    unread = (
        (list_orders.position < 0)
        & list_orders.ordered[writes.key]
        & (list_orders.longest[writes.key] >= 0)
    )
    unread &= is_live
    parts += _of_the_unread(
        txns,
        micro,
        writes,
        np.flatnonzero(unread),
        reads[~replaced],
        last_read,
        _last_live(standing, writes, micro),
    )
    return Edges.joined(parts)


def unread_edges(writes: Writes, list_orders: ListOrders, read_index: ReadIndex) -> Edges:
    """Return ww edges between the committed appends to each key that no read shows, as if they came as they appear.

    Nothing shows that order; an order of them exists, though. One append stands for all of its transaction.
    """
    is_unread = (list_orders.position < 0) & list_orders.ordered[writes.key]
    chosen = np.flatnonzero(is_unread & writes.is_last & read_index.committed[writes.txn])
    chosen = chosen[np.lexsort((writes.txn[chosen], writes.key[chosen]))]
    before, after = chosen[:-1], chosen[1:]
    same_key = writes.key[before] == writes.key[after]
    before, after = before[same_key], after[same_key]
    return Edges.of(WW, writes.txn[before], writes.txn[after], writes.micro[after])


def _standing(list_orders: ListOrders, is_live: Mask) -> Numbers:
    """For each position in the list orders its write, −1 if no committed transaction wrote it."""
    standing = np.where(list_orders.write >= 0, list_orders.write, -1)
    known = np.flatnonzero(standing >= 0)
    standing[known[~is_live[standing[known]]]] = -1
    return standing


def _neighbours(standing: Numbers) -> tuple[Numbers, Numbers]:
    """The committed writes, each with the one after it."""
    live = standing[standing >= 0]
    return live[:-1], live[1:]


def _last_live(standing: Numbers, writes: Writes, micro: MicroOperations) -> Numbers:
    """For each key the last committed write that was read, −1 without one."""
    last = np.full(len(micro.keys), -1, dtype=np.int64)
    live = standing[standing >= 0]
    last[writes.key[live]] = live
    return last


def _of_the_unread(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    unread: Numbers,
    reads: Numbers,
    last_read: Numbers,
    last_live: Numbers,
) -> list[Edges]:
    """The edges to appends that no transaction read, from the last that was read and from those that read up to it."""
    before = last_live[writes.key[unread]]
    has_before = before >= 0
    ww = Edges.of(
        WW,
        writes.txn[before[has_before]],
        writes.txn[unread[has_before]],
        writes.micro[unread[has_before]],
    )
    wanted = np.zeros(len(micro.keys), dtype=np.bool_)
    wanted[writes.key[unread]] = True
    reads = reads[wanted[micro.key[reads]]]
    read, write = later_writes(
        len(micro.keys),
        micro.key[reads],
        micro.txn[reads],
        writes.key[unread],
        writes.txn[unread],
        began=txns.began,
        ended=txns.ended,
    )
    last = last_read[reads[read]]
    at_last = np.maximum(last, 0)
    halfway = (last >= 0) & (writes.txn[at_last] == writes.txn[unread[write]])
    # A list with a later append of the same transaction lacks this one: no state of that transaction.
    halfway &= writes.micro[at_last] < writes.micro[unread[write]]
    read, write = read[~halfway], write[~halfway]
    rw = Edges.of(RW, micro.txn[reads[read]], writes.txn[unread[write]], reads[read])
    return [ww, rw]


@compiled
def _next_live(standing: Numbers, first: Numbers) -> Numbers:
    """For each position the first committed write of its key from there on, −1 without one."""
    following = np.full(len(standing), -1, np.int64)
    for key in range(len(first) - 1):
        next_write = -1
        for position in range(first[key + 1] - 1, first[key] - 1, -1):
            if standing[position] >= 0:
                next_write = standing[position]
            following[position] = next_write
    return following


@compiled
def _following(
    reads: Numbers,
    key: Numbers,
    count: Numbers,
    last_read: Numbers,
    writer: Numbers,
    first: Numbers,
    next_live: Numbers,
) -> Numbers:
    """For each read the committed write that replaced what it saw, −1 without one."""
    following = np.full(len(reads), -1, np.int64)
    for n in range(len(reads)):
        read = reads[n]
        last = last_read[read]
        for position in range(first[key[read]] + count[read], first[key[read] + 1]):
            write = next_live[position]
            if write < 0 or last < 0 or writer[write] != writer[last]:
                following[n] = write
                break
    return following
