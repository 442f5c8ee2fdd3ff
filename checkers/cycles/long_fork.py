"""long-fork: reads agree on the order in which keys were written.

A transaction either writes one key, which nothing else writes, or reads some keys. A key that a read returned as nil
was written after the read's snapshot, any other key before it. So a read that saw key 1 without key 0 proves that key 1
was written first. An order of all writes exists if and only if these proofs have no cycle.
Smallest break: a read sees key 0 without key 1, another one key 1 without key 0.

Parallel snapshot isolation allows such reads; snapshot isolation and every stronger model forbids them. Reads may have
different keys. Cycles are found however many reads they take; Jepsen compares two reads of the same keys.

It is ``unknown`` instead of ``valid`` where the history has other transactions: a key with two writes or two values, a
transaction of several writes, or of writes and reads. What other reads prove still counts, as no key becomes nil again.
Whether a value was written at all is not judged: the workload ``rw-register`` judges that of the same file.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from nemesis.checkers.breaks import forks as breaks
from nemesis.checkers.cycles.transaction_rows import COLUMNS, FAIL, KINDS, OK, Rows
from nemesis.checkers.framework.components import components
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import MAX_FINDINGS, GlobalCheck, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.sources import EventSource

if TYPE_CHECKING:
    from nemesis.checkers.cycles.transactions import MicroOperations, Transactions

MAX_STARTS: Final = 64
"""A shortest cycle is searched for from this many keys of a component."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a transaction of reads alone returned; keys are positions in ``MicroOperations.keys``."""

    txn: int
    present: tuple[int, ...]
    absent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """The proof that key ``before`` was written before key ``after``."""

    txn: int
    before: int
    after: int


class LongFork(GlobalCheck[Rows]):
    kinds = frozenset(KINDS)
    columns = COLUMNS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LONG_FORK,)

    def part(self, segment: Segment) -> Rows:
        return Rows.of(segment)

    def judge(self, parts: list[Rows]) -> Results:
        rows = Rows.joined(parts)
        if not len(rows.row):
            return conclude(LONG_FORK, checked=0)
        # numba takes half a second to import, which a history without transactions need not wait for.
        from nemesis.checkers.cycles.transactions import transactions

        txns, micro = transactions(rows)
        snapshots = list(_snapshots(txns, micro))
        forks = [_fork(txns, micro, links) for links in cycles(snapshots)]
        doubts = [*_malformed(txns), *_irregular(txns, micro)]
        return conclude(
            LONG_FORK,
            checked=len(snapshots),
            findings=[*forks[:MAX_FINDINGS], *doubts[:MAX_FINDINGS]],
            finding_count=len(forks) + len(doubts),
        )


def _snapshots(txns: Transactions, micro: MicroOperations) -> Iterator[Snapshot]:
    """Yield what each successful transaction of reads alone returned."""
    from nemesis.checkers.cycles.transactions import READ

    for txn, members in _by_transaction(micro):
        if txns.outcome[txn] != OK or any(micro.code[member] != READ for member in members):
            continue
        present = (int(micro.key[member]) for member in members if micro.count[member] > 0)
        absent = (int(micro.key[member]) for member in members if micro.count[member] == 0)
        yield Snapshot(txn, tuple(dict.fromkeys(present)), tuple(dict.fromkeys(absent)))


def _by_transaction(micro: MicroOperations) -> Iterator[tuple[int, range]]:
    """Yield each transaction that has micro-operations, with their positions."""
    starts = np.flatnonzero(np.diff(micro.txn, prepend=-1)).tolist()
    for start, stop in pairwise([*starts, len(micro)]):
        yield int(micro.txn[start]), range(start, stop)


def cycles(snapshots: Sequence[Snapshot]) -> Iterator[list[Link]]:
    """Yield a shortest cycle of proofs from each set of keys that contradict each other.

    Nodes are keys and snapshots: each key that a snapshot saw leads to the snapshot, and the snapshot to each key that
    it did not see. So the number of edges is that of reads, and a cycle of keys is a cycle of these nodes.
    """
    keys = 1 + max((key for read in snapshots for key in (*read.present, *read.absent)), default=-1)
    edges = [
        *((key, keys + number) for number, read in enumerate(snapshots) for key in read.present),
        *((keys + number, key) for number, read in enumerate(snapshots) for key in read.absent),
    ]
    source, target = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    label = components(keys + len(snapshots), source, target, is_strong=True)
    is_inside = label[source] == label[target]
    # An edge inside a strong component lies on a cycle: all others can be left out.
    following: defaultdict[int, list[int]] = defaultdict(list)
    starts: defaultdict[int, list[int]] = defaultdict(list)
    for before, after in zip(source[is_inside].tolist(), target[is_inside].tolist(), strict=True):
        following[before].append(after)
        if before < keys and len(following[before]) == 1:
            starts[int(label[before])].append(before)
    for members in starts.values():
        shortest = (_shortest_cycle(key, following) for key in sorted(members)[:MAX_STARTS])
        nodes = min(shortest, key=len)
        yield [
            Link(snapshots[nodes[index + 1] - keys].txn, nodes[index], nodes[index + 2])
            for index in range(0, len(nodes) - 1, 2)
        ]


def _shortest_cycle(start: int, following: dict[int, list[int]]) -> list[int]:
    """Return the nodes of a shortest cycle through a key, which is its first and last node."""
    before: dict[int, int] = {}
    waiting = deque([start])
    while start not in before:
        node = waiting.popleft()
        for after in following[node]:
            if after not in before:
                before[after] = node
                waiting.append(after)
    nodes = [start, before[start]]
    while nodes[-1] != start:
        nodes.append(before[nodes[-1]])
    return nodes[::-1]


def _fork(txns: Transactions, micro: MicroOperations, links: Sequence[Link]) -> Finding:
    """Return the finding about reads that contradict each other."""
    key = f"key {micro.keys[links[0].before]}"
    if len(links) == 1:
        name = txns.name(links[0].txn)
        sentence = f"{name} read {key} twice, as written and as not written."
        return finding("long-fork", key, sentence, int(txns.row[links[0].txn]))
    proofs = [
        (txns.name(link.txn), f"key {micro.keys[link.before]}", f"key {micro.keys[link.after]}")
        for link in links
    ]
    saw = ", and ".join(f"{name} saw {before} without {after}" for name, before, after in proofs)
    steps = [
        f"{name} saw {before} without {after}, so {before} was written before {after}."
        for name, before, after in proofs
    ]
    steps.append("Each of these keys was written before the next, and the last before the first.")
    rows = sorted({int(txns.row[link.txn]) for link in links})
    return finding("long-fork", key, f"{saw}.", *rows, steps=steps)


def _malformed(txns: Transactions) -> Iterator[Finding]:
    for problem in txns.problems:
        yield finding("long-fork", "the history", problem, verdict=Verdict.UNKNOWN)


def _irregular(txns: Transactions, micro: MicroOperations) -> Iterator[Finding]:
    """Yield a finding for each transaction and key of which reads do not prove that an order exists."""
    from nemesis.checkers.cycles.transactions import WRITE

    writers: Counter[int] = Counter()
    values: defaultdict[int, set[int]] = defaultdict(set)
    row: dict[int, int] = {}
    for txn, members in _by_transaction(micro):
        if txns.outcome[txn] == FAIL:
            continue
        writes = [member for member in members if micro.code[member] == WRITE]
        if writes and len(members) > 1:
            yield _doubt(f"{txns.name(txn)} does more than a single write.", int(txns.row[txn]))
        writers.update(int(micro.key[member]) for member in writes)
        for member in members:
            key = int(micro.key[member])
            values[key].update(micro.elements(member))
            row.setdefault(key, int(txns.row[txn]))
    for key, known in values.items():
        if writers[key] > 1 or len(known) > 1:
            sentence = f"Key {micro.keys[key]} has more than one write or value."
            yield _doubt(sentence, row[key])


def _doubt(sentence: str, *rows: int) -> Finding:
    said = f"{sentence} Then reads without a contradiction do not prove an order."
    return finding("long-fork", "the history", said, *rows, verdict=Verdict.UNKNOWN)


LONG_FORK: Final = Property(
    name="long-fork",
    promise="Reads agree on the order in which keys were written.",
    unit="reads",
    unknown="No transaction of reads succeeded, or a key has more than one write.",
    source="Jepsen's long-fork workload.",
    check=LongFork,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.LONG_FORK,
)
