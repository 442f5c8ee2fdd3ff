"""Which orders of writes a guarantee requires, and which reads miss what they have to show.

Each requirement is an order of the writes of two transactions. ``guarantees`` has the definitions, and decides whether
some order of all transactions keeps what is required.

Limits: of a process with several transactions at once only the order of those that do not overlap counts, from the
last overlap on. A transaction in doubt overlaps all later ones of its process, and does not interrupt their order.
Orders beyond ``MAX_EDGES`` are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.models import Guarantee
from nemesis.checkers.cycles.read_versions import UNSHOWN, ReadVersions
from nemesis.checkers.cycles.transactions import NEVER, Transactions
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers

MAX_EDGES: Final = 4_000_000
REQUIRED: Final = -1
"""The kind of an order that the guarantee requires."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Why the writes of a transaction come before those of another one."""

    source: int
    target: int
    first: int = -1
    """The micro-operation that requires it: an own write or an earlier read."""
    read: int = -1
    """The later read that has to show what ``first`` requires."""
    kind: int = REQUIRED
    """``WW`` or ``WR`` of an order that the history shows itself."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A read that lacks what an earlier micro-operation requires it to show."""

    read: int
    first: int


@dataclass(slots=True)
class Requirements:
    """What follows from a guarantee, collected."""

    listed: list[Requirement] = field(default_factory=list)
    missed: Missed | None = None
    is_cut: bool = False
    """Whether there were more than ``MAX_EDGES``."""

    def add(self, source: int, target: int, first: int, read: int = -1) -> None:
        if len(self.listed) >= MAX_EDGES:
            self.is_cut = True
        elif source != target:
            self.listed.append(Requirement(source, target, first, read))

    def miss(self, read: int, first: int) -> None:
        if self.missed is None:
            self.missed = Missed(read, first)


@dataclass(frozen=True, slots=True)
class _History:
    txns: Transactions
    writes: Writes
    versions: ReadVersions
    code: list[int]
    key: list[int]
    first: list[int]
    """For each transaction its first micro-operation; one more than there are transactions."""
    write_of: list[int]
    """For each micro-operation its write, −1 for a read."""
    txn_of: list[int]
    """For each write its transaction."""
    micro_of: list[int]
    """For each write its micro-operation."""
    source: list[int]
    """For each micro-operation the write that it shows last, ``NOTHING``, or ``UNSHOWN``."""

    def show(self, requirements: Requirements, write: int, read: int, first: int) -> None:
        """Require that a read shows a write of its key, because of ``first``."""
        source = self.source[read]
        if source == NOTHING or (
            self.txn_of[source] == self.txn_of[write]
            and (self.micro_of[source] < self.micro_of[write])
        ):
            requirements.miss(read, first)
        elif self.versions.position is not None:
            position = int(self.versions.position[write])
            if position < 0 or position > self.versions.position[source]:
                requirements.miss(read, first)
        elif self.txn_of[source] != self.txn_of[write]:
            requirements.add(self.txn_of[write], self.txn_of[source], first, read)

    def is_in_doubt(self, txn: int) -> bool:
        """Whether it is unknown when a transaction ended, and what its reads returned."""
        return bool(self.txns.ended[txn] == NEVER)

    def micros(self, txn: int) -> range:
        return range(self.first[txn], self.first[txn + 1])


def requirements_of(
    guarantee: Guarantee,
    txns: Transactions,
    writes: Writes,
    committed: Numbers,
    versions: ReadVersions,
) -> Requirements:
    """Return what follows from a guarantee; ``committed``: numbers of the committed transactions."""
    history = _history(txns, writes, versions)
    if guarantee is Guarantee.MONOTONIC_ATOMIC_VIEW:
        return _of_atomic_views(history, committed)
    return _OF_SESSIONS[guarantee](history, list(_sessions(txns, committed)))


def _history(txns: Transactions, writes: Writes, versions: ReadVersions) -> _History:
    micro = versions.micro
    write_of = np.full(len(micro), -1, dtype=np.int64)
    write_of[writes.micro] = np.arange(len(writes))
    return _History(
        txns=txns,
        writes=writes,
        versions=versions,
        code=micro.code.tolist(),
        key=micro.key.tolist(),
        first=np.searchsorted(micro.txn, np.arange(len(txns) + 1)).tolist(),
        write_of=write_of.tolist(),
        txn_of=writes.txn.tolist(),
        micro_of=writes.micro.tolist(),
        source=versions.source.tolist(),
    )


def _sessions(txns: Transactions, committed: Numbers) -> Iterator[list[int]]:
    """Yield the transactions of each process in their order; another list begins where two overlap.

    A transaction in doubt comes after those before it in its list, and nothing in the list comes after it.
    """
    session: list[int] = []
    process, latest = -1, 0
    for txn in committed[np.argsort(txns.process[committed], kind="stable")].tolist():
        is_same = int(txns.process[txn]) == process
        if session and not (is_same and latest <= int(txns.began[txn])):
            yield session
            session = []
        process, latest = int(txns.process[txn]), latest if is_same else 0
        if txns.ended[txn] != NEVER:
            latest = max(latest, int(txns.ended[txn]))
        session.append(txn)
    if session:
        yield session


def _read_your_writes(history: _History, sessions: list[list[int]]) -> Requirements:
    requirements = Requirements()
    for session in sessions:
        own: dict[int, list[int]] = {}
        required: dict[tuple[int, int], int] = {}
        for txn in session:
            for micro in history.micros(txn):
                key, write = history.key[micro], history.write_of[micro]
                if write >= 0:
                    if not history.is_in_doubt(txn):
                        own.setdefault(key, []).append(write)
                elif history.source[micro] != UNSHOWN and key in own:
                    # The writes before an earlier read that returned the same are required already.
                    version = key, history.source[micro]
                    for earlier in own[key][required.get(version, 0) :]:
                        history.show(requirements, earlier, micro, history.micro_of[earlier])
                    required[version] = len(own[key])
    return requirements


def _monotonic_reads(history: _History, sessions: list[list[int]]) -> Requirements:
    requirements = Requirements()
    for session in sessions:
        last: dict[int, int] = {}
        for txn in session:
            for micro in history.micros(txn):
                source, key = history.source[micro], history.key[micro]
                if source == UNSHOWN:
                    continue
                # What earlier reads show comes before what the last one shows, so the last one is enough.
                if key in last:
                    history.show(requirements, history.source[last[key]], micro, last[key])
                if source >= 0:
                    last[key] = micro
    return requirements


def _monotonic_writes(history: _History, sessions: list[list[int]]) -> Requirements:
    requirements = Requirements()
    for session in sessions:
        before = -1
        for txn in session:
            if not _written(history, txn):
                continue
            if before >= 0:
                requirements.add(before, txn, _written(history, before)[0])
            if not history.is_in_doubt(txn):
                before = txn
    return requirements


def _writes_follow_reads(history: _History, sessions: list[list[int]]) -> Requirements:
    """What a session has read leads to a node of its last reading transaction, and from there to its next writers.

    The node of a transaction has the number of transactions more than the transaction.
    """
    requirements = Requirements()
    count = len(history.txns)
    for session in sessions:
        node = -1
        for txn in session:
            written = _written(history, txn)
            if written and node >= 0:
                requirements.add(node, txn, -1)
            reads = [micro for micro in history.micros(txn) if history.source[micro] >= 0]
            for read in reads:
                _precede_own(history, requirements, txn, read, written)
                requirements.add(history.txn_of[history.source[read]], count + txn, read)
            if reads:
                if node >= 0:
                    requirements.add(node, count + txn, -1)
                node = count + txn
    return requirements


def _precede_own(
    history: _History, requirements: Requirements, txn: int, read: int, written: list[int]
) -> None:
    """What a transaction read comes before what it wrote later."""
    source = history.source[read]
    if history.txn_of[source] != txn and written and written[-1] > read:
        requirements.add(history.txn_of[source], txn, read)
    elif history.txn_of[source] == txn and history.micro_of[source] > read:
        requirements.miss(read, history.micro_of[source])


def _written(history: _History, txn: int) -> list[int]:
    return [micro for micro in history.micros(txn) if history.write_of[micro] >= 0]


_OF_SESSIONS: Final = {
    Guarantee.READ_YOUR_WRITES: _read_your_writes,
    Guarantee.MONOTONIC_READS: _monotonic_reads,
    Guarantee.MONOTONIC_WRITES: _monotonic_writes,
    Guarantee.WRITES_FOLLOW_READS: _writes_follow_reads,
}


def _of_atomic_views(history: _History, committed: Numbers) -> Requirements:
    requirements = Requirements()
    for txn in committed.tolist():
        met: dict[int, int] = {}
        """By transaction that a read returned, that read."""
        for micro in history.micros(txn):
            source, key = history.source[micro], history.key[micro]
            if source == UNSHOWN:
                continue
            for writer, read in met.items():
                for write in _to(history, writer, key):
                    history.show(requirements, write, micro, read)
            if source >= 0 and history.txn_of[source] != txn:
                met.setdefault(history.txn_of[source], micro)
    return requirements


def _to(history: _History, txn: int, key: int) -> list[int]:
    """The writes of a transaction to a key that later reads show: all appends to a list, the last one to a register."""
    written = [
        history.write_of[micro] for micro in _written(history, txn) if history.key[micro] == key
    ]
    return written[-1:] if history.versions.position is None else written
