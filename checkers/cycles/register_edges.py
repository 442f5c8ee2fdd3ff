"""The dependencies of registers: what was read from whom, and as much of the orders of versions as is certain.

A register shows its last version only, so the order of its versions is known in part:

* every version comes after nil, the initial one;
* what a transaction writes comes after what it read of the same key before (*writes follow reads*). Were it otherwise,
  the transaction would have read what was overwritten by itself, which is G1c: so under read committed or more, a cycle
  of these dependencies is a violation either way. Under less it is an assumption, and not made.

Limits: two writes of which no reader writes again are not ordered here, so these edges show the cycles that are certain
and have a name; ``orders`` decides the rest. That a write came after a nil which others read is kept for all pairs of
a key up to a bound (``edges.later_writes``).
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.edges import RW, WR, WW, Edges, later_writes
from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.transactions import Mask, MicroOperations, Transactions
from nemesis.checkers.cycles.updates import Updates
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers


def register_edges(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    last_read: Numbers,
    own: Mask,
    updates: Updates,
    version: Numbers,
    read_index: ReadIndex,
    *,
    writes_follow_reads: bool,
) -> Edges:
    """Return the wr edges between committed transactions, and the ww and rw edges that are certain."""
    is_live = read_index.committed[writes.txn]
    reads = np.flatnonzero(last_read >= 0)
    reads = reads[is_live[last_read[reads]]]
    wr = Edges.of(WR, writes.txn[last_read[reads]], micro.txn[reads], reads)
    nil = _after_nil(txns, micro, writes, last_read, updates, read_index)
    if not writes_follow_reads:
        return Edges.joined([wr, nil])
    before = last_read[updates.read]
    kept = before >= 0
    kept[kept] = is_live[before[kept]]
    after = updates.write[kept]
    ww = Edges.of(WW, writes.txn[before[kept]], writes.txn[after], writes.micro[after])
    reads = np.flatnonzero(version >= 0)
    reads = reads[~own[reads]]
    successor = updates.successor[version[reads]]
    replaced = successor >= 0
    rw = Edges.of(RW, micro.txn[reads[replaced]], writes.txn[successor[replaced]], reads[replaced])
    return Edges.joined(
        [ww, wr, rw, nil, _after_the_same(txns, micro, writes, updates, version, reads)]
    )


def _after_the_same(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    updates: Updates,
    version: Numbers,
    reads: Numbers,
) -> Edges:
    """The anti-dependencies on further updates of a version that has been updated once, which are lost updates."""
    again = updates.first != updates.write
    written, of_version = updates.write[again], version[updates.read[again]]
    wanted = np.zeros(len(updates.successor), dtype=np.bool_)
    wanted[of_version] = True
    reads = reads[wanted[version[reads]]]
    read, write = later_writes(
        len(updates.successor),
        version[reads],
        micro.txn[reads],
        of_version,
        writes.txn[written],
        began=txns.began,
        ended=txns.ended,
    )
    return Edges.of(RW, micro.txn[reads[read]], writes.txn[written[write]], reads[read])


def _after_nil(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    last_read: Numbers,
    updates: Updates,
    read_index: ReadIndex,
) -> Edges:
    """The anti-dependencies of those who read nil on those of whom nobody knows what they wrote after."""
    blind = writes.is_last & read_index.committed[writes.txn] & ~writes.ambiguous[writes.key]
    blind[updates.write] = False
    written = np.flatnonzero(blind)
    reads = np.flatnonzero(last_read == NOTHING)
    read, write = later_writes(
        len(micro.keys),
        micro.key[reads],
        micro.txn[reads],
        writes.key[written],
        writes.txn[written],
        began=txns.began,
        ended=txns.ended,
    )
    return Edges.of(RW, micro.txn[reads[read]], writes.txn[written[write]], reads[read])
