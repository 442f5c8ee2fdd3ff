"""Orders of a register's versions that follow if each key by itself is consistent: Elle's options of these names.

* ``sequential-keys``: each key is sequentially consistent. Some order of all transactions of the key explains what they
  read of it, and keeps the order of each process.
* ``linearizable-keys``: each key is linearizable. That order also keeps real time.
* ``wfr-keys``: within a transaction, writes follow reads. What it writes to a key comes after what it read of the key.
  From read committed on this is so without the option (``register_edges``). Under less it is an assumption.

A transaction *begins* with a version of a key: what it read before it wrote the key, else its last write. It *leaves*
its last write, else what it read. If one transaction comes before another one in the order that the key keeps, the
version that it leaves is not newer than the version with which the other one begins: it is the same, or comes before.

The options state what the system promises. They restrict the version orders that are possible; they forbid no cycle.
Under a model that keeps the same order they change no verdict: strict serializability makes each key linearizable. A
key whose versions would come before themselves breaks the promise: no version order exists (``Contradicted``; in Elle
``cyclic-versions``). Nothing else follows from the order of that key.
Smallest break: a process writes 1, and then reads nil.

Limits: only a committed last write, or the initial version, counts as a version. Other anomalies report other reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from nemesis.checkers.cycles.edges import RW, WW, Edges
from nemesis.checkers.cycles.key_options import LINEARIZABLE, SEQUENTIAL
from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.transactions import NEVER, READ, Mask, MicroOperations, Transactions
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.framework.compiled import compiled
from nemesis.checkers.framework.components import components


def _nothing() -> Numbers:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Contradicted:
    """A key of which no version order keeps the option: each version comes before the next, in a circle."""

    option: str
    key: int
    source: tuple[int, ...]
    """For each version a transaction that leaves it, ..."""
    target: tuple[int, ...]
    """... and a later one that begins with the next version."""
    version: tuple[int, ...]
    """Numbers of writes; beyond them, the initial version."""


@dataclass(frozen=True, slots=True)
class KeyOrders:
    """Pairs of versions of a key: numbers of writes. ``before`` comes before ``after``."""

    option: str = ""
    """The option from which the pairs follow."""
    before: Numbers = field(default_factory=_nothing)
    after: Numbers = field(default_factory=_nothing)
    source: Numbers = field(default_factory=_nothing)
    """A transaction that leaves ``before``, ..."""
    target: Numbers = field(default_factory=_nothing)
    """... and a later one that begins with ``after``, or the same one."""
    contradicted: Contradicted | None = None

    def edges(self, micro: MicroOperations, writes: Writes, version: Numbers, own: Mask) -> Edges:
        """Return the dependencies that follow. ``version``: of each read; ``own``: whether it is its transaction's."""
        writer = writes.txn[self.after]
        ww = Edges.of(WW, writes.txn[self.before], writer, writes.micro[self.after])
        reads = np.flatnonzero((version >= 0) & (version < len(writes)) & ~own)
        reads = reads[np.argsort(version[reads], kind="stable")]
        first = np.searchsorted(version[reads], self.before, side="left")
        count = np.searchsorted(version[reads], self.before, side="right") - first
        # The readers of each pair's version stand together: their positions, pair by pair.
        start = np.repeat(first - (np.cumsum(count) - count), count)
        reads = reads[start + np.arange(int(count.sum()))]
        rw = Edges.of(RW, micro.txn[reads], np.repeat(writer, count), reads)
        return Edges.joined([ww, rw])


@dataclass(frozen=True, slots=True)
class _Accesses:
    """One entry for each key of each transaction that begins with a version of it."""

    txn: Numbers
    key: Numbers
    begins: Numbers
    leaves: Numbers

    @classmethod
    def of(
        cls,
        micro: MicroOperations,
        writes: Writes,
        own: Mask,
        version: Numbers,
        read_index: ReadIndex,
    ) -> _Accesses:
        is_version = writes.is_last & read_index.committed[writes.txn]
        # The initial version of each key stands behind the writes.
        is_version = np.append(is_version, np.ones(len(micro.keys), dtype=np.bool_))
        reads = np.flatnonzero((micro.code == READ) & (micro.previous < 0) & (version >= 0) & ~own)
        reads = reads[is_version[version[reads]]]
        written = np.flatnonzero(is_version[: len(writes)] & ~writes.ambiguous[writes.key])
        keys = max(1, len(micro.keys))
        read_entry = micro.txn[reads] * keys + micro.key[reads]
        write_entry = writes.txn[written] * keys + writes.key[written]
        entries, position = np.unique(
            np.concatenate([read_entry, write_entry]), return_inverse=True
        )
        begins = np.zeros(len(entries), dtype=np.int64)
        leaves = np.zeros(len(entries), dtype=np.int64)
        of_read, of_write = np.split(position, [len(reads)])
        begins[of_write], leaves[of_read] = written, version[reads]
        begins[of_read], leaves[of_write] = version[reads], written
        return cls(entries // keys, entries % keys, begins, leaves)


def key_orders(
    txns: Transactions,
    micro: MicroOperations,
    writes: Writes,
    own: Mask,
    version: Numbers,
    read_index: ReadIndex,
    options: Collection[str],
    *,
    has_real_time: bool,
) -> KeyOrders:
    """Return the order of versions that the options imply. ``version``: of each read a number, −1 if it is unknown."""
    if not {SEQUENTIAL, LINEARIZABLE} & set(options):
        return KeyOrders()
    accesses = _Accesses.of(micro, writes, own, version, read_index)
    txn, key = accesses.txn, accesses.key
    process_key = txns.process[txn] * max(1, len(micro.keys)) + key
    # A process may begin a transaction in the very moment in which its last one ended.
    began = np.where(txns.began[txn] == UNSET, UNSET, txns.began[txn] + 1)
    parts = [_successive(process_key, began, txns.ended[txn])]
    is_timed = LINEARIZABLE in options and has_real_time
    if is_timed:
        parts.append(_successive(key, txns.began[txn], txns.ended[txn]))
    everyone = np.arange(len(txn))
    before = np.concatenate([accesses.leaves[first] for first, _ in parts] + [accesses.begins])
    after = np.concatenate([accesses.begins[second] for _, second in parts] + [accesses.leaves])
    source = np.concatenate([first for first, _ in parts] + [everyone])
    target = np.concatenate([second for _, second in parts] + [everyone])
    kept = np.flatnonzero(before != after)
    _, first = np.unique(
        before[kept] * (len(writes) + len(micro.keys)) + after[kept], return_index=True
    )
    kept = kept[first]
    before, after, source, target = before[kept], after[kept], source[kept], target[kept]
    option = LINEARIZABLE if is_timed else SEQUENTIAL
    is_wrong = _contradicted(key[source], before, after, len(writes), len(micro.keys))
    contradicted = None
    if is_wrong.any():
        wrong = np.flatnonzero(is_wrong[key[source]])
        wrong = wrong[key[source[wrong]] == key[source[wrong[0]]]]
        hops = wrong[_shortest_cycle(before[wrong], after[wrong], len(writes))]
        contradicted = Contradicted(
            option,
            int(key[source[hops[0]]]),
            tuple(txn[source[hops]].tolist()),
            tuple(txn[target[hops]].tolist()),
            tuple(before[hops].tolist()),
        )
    good = np.flatnonzero(~is_wrong[key[source]] & (before < len(writes)))
    return KeyOrders(
        option,
        before[good],
        after[good],
        txn[source[good]],
        txn[target[good]],
        contradicted,
    )


def _successive(group: Numbers, began: Numbers, ended: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs of entries of a group: each entry with the latest of those that had ended before it began."""
    by = np.lexsort((began, group))
    first, second = _latest_before(group[by], began[by], ended[by])
    return by[first], by[second]


@compiled
def _latest_before(group: Numbers, began: Numbers, ended: Numbers) -> tuple[Numbers, Numbers]:
    """Entries are sorted by group and beginning. An entry is linked unless it ended before a linked one began."""
    source = [np.int64(0) for _ in range(0)]
    target = [np.int64(0) for _ in range(0)]
    waiting = np.empty(len(group), np.int64)
    count = 0
    for entry in range(len(group)):
        if entry and group[entry] != group[entry - 1]:
            count = 0
        # The latest beginning among those that had ended. It grows, so what ended before it never counts again.
        latest = np.iinfo(np.int64).min
        for i in range(count):
            if ended[waiting[i]] < began[entry]:
                latest = max(latest, began[waiting[i]])
        kept = 0
        for i in range(count):
            other = waiting[i]
            if ended[other] < latest:
                continue
            waiting[kept] = other
            kept += 1
            if ended[other] < began[entry]:
                source.append(np.int64(other))
                target.append(np.int64(entry))
        count = kept
        if ended[entry] != NEVER:
            waiting[count] = entry
            count += 1
    return np.array(source, np.int64), np.array(target, np.int64)


def _contradicted(key: Numbers, before: Numbers, after: Numbers, writes: int, keys: int) -> Mask:
    """For each key, whether some version comes before itself, or before the initial one."""
    label = components(writes + keys, before, after, is_strong=True)
    is_wrong = np.zeros(keys, dtype=np.bool_)
    is_wrong[key[(label[before] == label[after]) | (after >= writes)]] = True
    return is_wrong


def _shortest_cycle(before: Numbers, after: Numbers, writes: int) -> Numbers:
    """The pairs of a shortest circle among those of a key. The initial version comes before every version."""
    leads: dict[int, list[int]] = {}
    for pair, version in enumerate(before.tolist()):
        leads.setdefault(version, []).append(pair)
    shortest: list[int] = []
    for pair in range(len(before)):
        if after[pair] >= writes:
            return np.array([pair])
        walk = _walk(leads, after, int(after[pair]), int(before[pair]))
        if walk is not None and (not shortest or len(walk) + 1 < len(shortest)):
            shortest = [pair, *walk]
        if len(shortest) == 2:
            break
    return np.array(shortest)


def _walk(leads: dict[int, list[int]], after: Numbers, start: int, goal: int) -> list[int] | None:
    """The pairs of a shortest way from one version to another; None without one."""
    came_by: dict[int, tuple[int, int]] = {}
    queue = deque([start])
    while queue:
        version = queue.popleft()
        for pair in leads.get(version, []):
            following = int(after[pair])
            if following in came_by or following == start:
                continue
            came_by[following] = (version, pair)
            queue.append(following)
    if goal not in came_by:
        return None
    walk = []
    while goal != start:
        goal, pair = came_by[goal]
        walk.append(pair)
    return walk[::-1]
