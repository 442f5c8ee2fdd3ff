"""Which write each read shows last, and where it stands: for guarantees about what reads have to show.

The appends of failed transactions are passed over: a list shows the last append before them. If lists of a key differ
only by such appends, the others have an order all the same. If they differ otherwise, no order gives both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from nemesis.checkers.cycles.edges import WW, Edges
from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.transactions import READ, UNKNOWN, Mask, MicroOperations
from nemesis.checkers.cycles.version_orders import ListOrders
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers

UNSHOWN: Final = -3
"""It is unknown which committed write a read shows, or it is not a read."""


@dataclass(frozen=True, slots=True)
class ReadVersions:
    micro: MicroOperations
    source: Numbers
    """For each micro-operation the committed write that it shows last, ``NOTHING`` or ``UNSHOWN``."""
    position: Numbers | None = None
    """Of lists: for each write its place in the order of its key, −1 if no list shows it."""
    edges: Edges | None = None
    """Of lists of which some differ: the order of their appends."""
    disagreement: tuple[int, int] | None = None
    """Two reads of which no order of committed appends gives both."""


def of_registers(
    micro: MicroOperations, writes: Writes, last_read: Numbers, committed: Mask
) -> ReadVersions:
    """Return the versions that reads of registers show."""
    is_known = last_read == NOTHING
    reads = np.flatnonzero(last_read >= 0)
    is_known[reads] = committed[writes.txn[last_read[reads]]]
    return ReadVersions(micro, np.where(is_known, last_read, UNSHOWN))


def of_lists(
    micro: MicroOperations, writes: Writes, list_orders: ListOrders, committed: Mask
) -> ReadVersions:
    """Return the versions that reads of lists show."""
    is_live = (list_orders.write >= 0) & committed[writes.txn[list_orders.write]]
    last_live = np.maximum.accumulate(np.where(is_live, np.arange(len(is_live)), -1))
    source = np.full(len(micro), UNSHOWN, dtype=np.int64)
    is_read = (micro.code == READ) & (micro.count > UNKNOWN) & ~writes.ambiguous[micro.key]
    reads = np.flatnonzero(is_read & list_orders.is_prefix & list_orders.ordered[micro.key])
    begin = list_orders.first[micro.key[reads]]
    last = np.append(last_live, -1)[begin + micro.count[reads] - 1]
    is_shown = (micro.count[reads] > 0) & (last >= begin)
    source[reads] = np.where(is_shown, np.append(list_orders.write, NOTHING)[last], NOTHING)
    versions = ReadVersions(micro, source, list_orders.position.copy())
    others = np.flatnonzero(is_read & ~list_orders.ordered[micro.key])
    by_key = np.split(others, np.flatnonzero(np.diff(micro.key[others])) + 1) if len(others) else []
    reads_of: dict[int, list[int]] = {}
    for part in by_key:
        reads_of.setdefault(int(micro.key[part[0]]), []).extend(part.tolist())
    for reads_of_key in reads_of.values():
        versions = _without_failed(versions, writes, committed, reads_of_key)
    return versions


def _without_failed(
    versions: ReadVersions, writes: Writes, committed: Mask, reads: list[int]
) -> ReadVersions:
    """Add a key of which the lists differ: in their order without the appends of failed transactions."""
    micro, key = versions.micro, int(versions.micro.key[reads[0]])
    shown = {read: _live(micro, writes, committed, read) for read in reads}
    longest = max(reads, key=lambda read: len(shown[read]))
    listed = shown[longest]
    for read in reads:
        if listed[: len(shown[read])] != shown[read]:
            return replace(versions, disagreement=versions.disagreement or (longest, read))
    assert versions.position is not None
    of_key = np.flatnonzero(writes.key == key)
    versions.position[of_key] = -1
    versions.position[listed] = np.arange(len(listed))
    for read in reads:
        versions.source[read] = shown[read][-1] if shown[read] else NOTHING
    unread = of_key[committed[writes.txn[of_key]] & (versions.position[of_key] < 0)].tolist()
    pairs = list(pairwise(listed))
    pairs += [(listed[-1], write) for write in unread] if listed else []
    before, after = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    edges = Edges.of(WW, writes.txn[before], writes.txn[after], writes.micro[after])
    parts = [edges] if versions.edges is None else [versions.edges, edges]
    return replace(versions, edges=Edges.joined(parts))


def _live(micro: MicroOperations, writes: Writes, committed: Mask, read: int) -> list[int]:
    """The committed writes that a list shows."""
    key = int(micro.key[read])
    written = [writes.find(key, element) for element in micro.elements(read)]
    return [write for write in written if write >= 0 and committed[writes.txn[write]]]
