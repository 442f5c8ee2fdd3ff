"""Dependencies between committed transactions: which cycles no correct cluster can have, and which Kafka permits.

A record that is derived from another one shows that its transaction read that one (wr). In the log of a partition, the
smaller offset was appended first (ww). A position that is committed in a transaction shows that it read nothing from
there on (rw). A process ends one transaction before it begins the next (process), and one transaction may end before
another begins (real time).

* **transaction-order**: (a) no cycle consists of wr, process and real time; (b) no record of a transaction is appended
  behind one that was sent only after its acknowledgement. (``append_order`` judges b.)
  Smallest breaks: (a) transaction 2 writes a record that is derived from a record of transaction 1, and is committed
  before the commit of transaction 1 is asked for; two transactions write a record each that is derived from the other
  one's; (b) value 1 is acknowledged at offset 6, and then value 2 is sent, and acknowledged at offset 5.

Why a: a reader of committed records is given a record only after its transaction is decided, and a producer reads
before it asks for its own commit. So each wr leads to a later decision. A decision lies between the request for the
commit and its answer, so process and real time lead to later decisions, too.

Why nothing else is convicted. Kafka isolates no appends: the records of transactions that are under way together
interleave as they come, in each partition in another order. So G0, and each cycle with a ww, is normal; Jepsen's own
test of Kafka allows the same. And reads are not validated at the commit: a reader may lag behind markers, high
watermarks and leaders, and two transactions may each miss what the other one writes. So every cycle with an rw
(G-single, G-nonadjacent, G2-item) is permitted: KIP-98 does not promise serializability. How many of these cycles a run
has is reported, by Elle's names.

Why b suffices for appends: of two records that are sent one after the other, whether by one producer or by several,
the first to be acknowledged is on all in-sync replicas, and has the smaller offset. So a producer's own transactions
have no cycle of ww. Records keep their offsets when a transaction aborts, so b judges all of them. In a longer cycle of
requests, rather than whole transactions, each edge leads to a request that was sent later, unless the edge by itself
contradicts time: a ww as in b, a wr as in ``read-beyond-lso``. So no such cycle shows more.

Where acknowledged records may be lost, findings are reported and allowed, like those of ``check``.
Limits: input that a transaction reads and derives nothing from is not known. A transaction of unknown outcome counts
as committed if a reader of committed records was given one of its records; when it ended is unknown. The search
names at most one cycle for each knot of transactions, level and order.
Source: KIP-98; ``allowed-error-types`` of jepsen.tests.kafka.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.transactions.derivations import Given, is_committed
from nemesis.checkers.transactions.produced import (
    NEVER,
    Operation,
    Partition,
    Produced,
    Transaction,
    partition_of,
)

if TYPE_CHECKING:
    from nemesis.checkers.cycles.edges import Edges
    from nemesis.checkers.cycles.search import Cycle, Step
    from nemesis.checkers.cycles.transactions import Transactions

_NONE: Final = -1


class Dependency(NamedTuple):
    """One transaction comes before another one; both are positions in ``Dependencies.nodes``."""

    source: int
    target: int
    written: Operation
    """The send of the source's record."""
    derived: Operation
    """The send of the target's record that is derived from it."""


class Dependencies:
    """The committed transactions, and what each shows of the order between them."""

    def __init__(self, known: Produced, given: Given) -> None:
        committed = (item for item in known.transactions.values() if is_committed(item, given))
        self.nodes: list[Transaction] = sorted(committed, key=_candidate_order)
        """As they ended; those of unknown end as they asked for it."""
        self._known = known
        self._index = {item.number: index for index, item in enumerate(self.nodes)}
        self.reads: list[Dependency] = list(self._reads())

    def impossible(self, name: str) -> Iterator[Finding]:
        """Find the cycles that no correct cluster has."""
        if not self.reads:
            return
        # numba takes half a second to import, which a run without dependencies need not wait for.
        from nemesis.checkers.cycles.edges import WR
        from nemesis.checkers.cycles.search import cycles_among

        reads = _edges(WR, [(read.source, read.target) for read in self.reads])
        decided = self._arrays([_commit(item).began for item in self.nodes])
        for cycle in cycles_among(decided, reads, _process_edges(decided)):
            yield self._finding(name, cycle)

    def permitted(self) -> dict[str, float]:
        """Return by name how many cycles there are that need an append, or a read that missed one."""
        if not self.nodes:
            return {}
        from nemesis.checkers.cycles.edges import RW, WR, WW, Edges
        from nemesis.checkers.cycles.search import cycles_among

        edges = Edges.joined(
            [
                _edges(WR, [(read.source, read.target) for read in self.reads]),
                _edges(WW, self._appends()),
                _edges(RW, self._misses()),
            ]
        )
        spans = self._arrays([_began(item) for item in self.nodes])
        counted = Counter(
            cycle.name
            for cycle in cycles_among(spans, edges, _process_edges(spans))
            if any(step.kind in (WW, RW) for step in cycle.steps)
        )
        return {f"permitted_{name}_cycles": float(counted[name]) for name in sorted(counted)}

    def _reads(self) -> Iterator[Dependency]:
        for target, transaction in enumerate(self.nodes):
            for send in transaction.sends:
                value = send.event.derived_from
                written = None if value is None else self._known.sends.get(value)
                source = None if written is None else self._index.get(_number(written))
                if written is not None and source is not None:
                    yield Dependency(source, target, written, send)

    def _appends(self) -> list[tuple[int, int]]:
        """The transactions of each two records that follow one another in a log."""
        return [
            (source, target)
            for placed in self._placed().values()
            for (_, source), (_, target) in pairwise(placed)
        ]

    def _misses(self) -> list[tuple[int, int]]:
        """Each transaction that commits a position, and the one of the first record from there on."""
        logs = self._placed()
        misses = []
        for reader, transaction in enumerate(self.nodes):
            for asked in transaction.offsets:
                placed = logs.get(partition_of(asked.event), [])
                first = bisect_left(placed, (asked.event.offset or 0, _NONE))
                if asked.is_ok and first < len(placed):
                    misses.append((reader, placed[first][1]))
        return misses

    def _placed(self) -> dict[Partition, list[tuple[int, int]]]:
        """The offsets in each partition with their transactions, in order."""
        logs: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
        for index, transaction in enumerate(self.nodes):
            for send in transaction.sends:
                if send.is_ok and (send.event.offset or 0) >= 0:
                    logs[partition_of(send.event)].append((send.event.offset or 0, index))
        return {partition: sorted(placed) for partition, placed in logs.items()}

    def _arrays(self, began: Sequence[int]) -> Transactions:
        """Return the transactions as the search for cycles takes them; each begins at the time that is given."""
        from nemesis.checkers.cycles.transaction_rows import INFO, OK
        from nemesis.checkers.cycles.transactions import Transactions

        commits = [_commit(item) for item in self.nodes]
        processes: dict[str, int] = {}
        numbers = [processes.setdefault(commit.event.process, len(processes)) for commit in commits]
        return Transactions(
            op=np.array([item.number for item in self.nodes], dtype=np.int64),
            outcome=np.array([OK if item.is_ok else INFO for item in commits], dtype=np.int8),
            process=np.array(numbers, dtype=np.int64),
            processes=list(processes),
            began=np.array(began, dtype=np.int64),
            ended=np.array([_ended(commit) for commit in commits], dtype=np.int64),
            row=np.array([commit.row for commit in commits], dtype=np.int64),
            problems=(),
        )

    def _finding(self, name: str, cycle: Cycle) -> Finding:
        numbers = [str(self.nodes[step.source].number) for step in cycle.steps]
        reasons = "; ".join(self._reason(step) for step in cycle.steps)
        listed = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        sentence = f"Committed transactions {listed} have no order: {reasons} ({cycle.name})."
        shown = {event for step in cycle.steps for event in self._shown_by(step)}
        reads = (self.reads[step.via] for step in cycle.steps if step.via != _NONE)
        written = next(reads).written.event
        return finding(
            name,
            tp_name(written.topic, written.partition),
            sentence,
            *(row for _, row in sorted(shown)),
        )

    def _reason(self, step: Step) -> str:
        source, target = self.nodes[step.source].number, self.nodes[step.target].number
        if step.via == _NONE:
            return f"{source} was committed before the commit of {target} was requested"
        read = self.reads[step.via]
        return (
            f"{target} wrote value {read.derived.event.value}, which is derived from value {read.written.event.value} "
            f"of {source}"
        )

    def _shown_by(self, step: Step) -> list[tuple[int, int]]:
        """Return when each event happened that shows the step, and its row."""
        if step.via == _NONE:
            source, target = _commit(self.nodes[step.source]), _commit(self.nodes[step.target])
            return [(source.ended, source.row), (target.began, target.invoked[0])]
        read = self.reads[step.via]
        return [(send.ended, send.row) for send in (read.written, read.derived)]


def _commit(transaction: Transaction) -> Operation:
    """The request for the commit, which every committed transaction has."""
    assert transaction.commit is not None
    return transaction.commit


def _ended(commit: Operation) -> int:
    return commit.ended if commit.is_ok else NEVER


def _began(transaction: Transaction) -> int:
    """When the first request about the transaction that is known was sent."""
    return min(
        operation.began
        for operation in (*transaction.sends, *transaction.offsets, _commit(transaction))
    )


def _candidate_order(transaction: Transaction) -> tuple[int, int]:
    commit = _commit(transaction)
    return (commit.ended if commit.is_ok else commit.began, transaction.number)


def _number(send: Operation) -> int:
    return _NONE if send.event.transaction is None else send.event.transaction


def _edges(kind: int, pairs: Sequence[tuple[int, int]]) -> Edges:
    """Return edges; each is shown by its position among the pairs."""
    from nemesis.checkers.cycles.edges import Edges

    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Edges.of(kind, ends[:, 0], ends[:, 1], np.arange(len(ends)))


def _process_edges(transactions: Transactions) -> Edges:
    from nemesis.checkers.cycles.process_order import process_edges

    return process_edges(transactions, np.ones(len(transactions), dtype=np.bool_))
