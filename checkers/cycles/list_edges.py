"""The dependencies of lists, from the orders of their versions.

The version after which a list was read is the write of its last element. Versions are those of committed transactions;
what a failed one left in a list is passed over (it is reported as G1a). A read of a transaction's own append says
nothing about others: whom the transaction itself came after is known from the list.

Further appends of the transaction whose append was read last are passed over: to see some of them and not the others
is G1b, and no dependency.

An append of a committed transaction that nobody has read came after the longest list that was read of its key: the
list did not have it, and elements never leave a list.
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.edges import RW, WR, WW, Edges, later_writes
from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.read_index import Seen
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
    orders: ListOrders,
    seen: Seen,
) -> Edges:
    """Return all ww, wr and rw edges between committed transactions."""
    is_live = seen.committed[writes.txn]
    standing = _standing(orders, is_live)
    next_live = _next_live(standing, orders.first)
    before, after = _neighbours(standing)
    same_key = writes.key[before] == writes.key[after]
    same_key &= orders.ordered[writes.key[after]]
    before, after = before[same_key], after[same_key]
    parts = [Edges.of(WW, writes.txn[before], writes.txn[after], writes.micro[after])]
    reads = np.flatnonzero(last_read >= 0)
    reads = reads[is_live[last_read[reads]]]
    parts.append(Edges.of(WR, writes.txn[last_read[reads]], micro.txn[reads], reads))
    reads = np.flatnonzero(orders.is_prefix & orders.ordered[micro.key] & (last_read >= NOTHING))
    reads = reads[~own[reads]]
    following = _following(
        reads, micro.key, micro.count, last_read, writes.txn, orders.first, next_live
    )
    replaced = following >= 0
    parts.append(
        Edges.of(RW, micro.txn[reads[replaced]], writes.txn[following[replaced]], reads[replaced])
    )
    unread = (orders.position < 0) & orders.ordered[writes.key] & (orders.longest[writes.key] >= 0)
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


def _standing(orders: ListOrders, is_live: Mask) -> Numbers:
    """For each place in the orders its write, −1 if it is of no committed transaction."""
    standing = np.where(orders.write >= 0, orders.write, -1)
    known = np.flatnonzero(standing >= 0)
    standing[known[~is_live[standing[known]]]] = -1
    return standing


def _neighbours(standing: Numbers) -> tuple[Numbers, Numbers]:
    """The committed writes, each with the one after it."""
    live = standing[standing >= 0]
    return live[:-1], live[1:]


def _last_live(standing: Numbers, writes: Writes, micro: MicroOperations) -> Numbers:
    """For each key the last committed write that was read, −1 if there is none."""
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
    """The edges to appends that nobody read, from the last that was read and from those who read up to it."""
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
    halfway = (last >= 0) & (writes.txn[np.maximum(last, 0)] == writes.txn[unread[write]])
    read, write = read[~halfway], write[~halfway]
    rw = Edges.of(RW, micro.txn[reads[read]], writes.txn[unread[write]], reads[read])
    return [ww, rw]


@compiled
def _next_live(standing: Numbers, first: Numbers) -> Numbers:
    """For each place the first committed write of its key from there on, −1 if there is none."""
    following = np.full(len(standing), -1, np.int64)
    for key in range(len(first) - 1):
        found = -1
        for place in range(first[key + 1] - 1, first[key] - 1, -1):
            if standing[place] >= 0:
                found = standing[place]
            following[place] = found
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
    """For each read the committed write that replaced what it saw, −1 if there is none."""
    following = np.full(len(reads), -1, np.int64)
    for n in range(len(reads)):
        read = reads[n]
        last = last_read[read]
        for place in range(first[key[read]] + count[read], first[key[read] + 1]):
            write = next_live[place]
            if write < 0 or last < 0 or writer[write] != writer[last]:
                following[n] = write
                break
    return following
