"""What has to be ordered: committed transactions, their reads of one another, and the writers of each key.

**The question.** For each key the transactions that wrote it have a version order. Given these orders, transactions
depend on each other: by *ww* (its version came before), *wr* (it was read) and *rw* (what it read was replaced). The
order of each process or real time is added where the model keeps it. The history keeps the model if some version
orders leave no cycle that the model forbids:

| model | a forbidden cycle consists of |
|---|---|
| read committed | ww, wr and order |
| read atomic | these; or one rw, and one wr or one step of the order |
| causal | these; or one rw, and wr and order |
| parallel snapshot isolation | ww, wr, order, at most one rw |
| snapshot isolation | ww, wr, order, and rw of which no two are adjacent |
| serializable | anything |

**Choices.** For two writers a and b of a key either a comes first: a → b (ww), and every reader r of a's version comes
before b: r → b (rw). Or b comes first, likewise. Version orders are such choices without a cycle of ww; that cycle is
forbidden under every model of the table. So the history keeps the model exactly if some choices leave no forbidden
cycle. Where neither version has a reader the choice matters only under the two snapshot isolations: under the others a
topological order of the rest decides it without a new rw.

Options about keys (``key_orders``) decide some choices beforehand.

**What takes part.** A transaction of which no end is known takes part if a write of it was read, as then it committed;
else it may have had no effect. A failed one does not. Of a read by the transaction's own write, of a value that
was not written or that a failed one wrote, nothing follows here: other anomalies report it. Keys whose values do not
tell their writers apart are left out. Each omission removes constraints only: so "no order exists" holds regardless.
Other anomalies convict what the omissions hide, except for ambiguous keys, which ``well-formed`` reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.models import Level, SessionOrder
from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.transactions import MicroOperations, Transactions
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers

NIL = -1
"""The writer of the initial version."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Transactions are numbered from 0, in the candidate order."""

    txn: Numbers
    """What each transaction is called in the analysis."""
    level: Level
    session_order: SessionOrder
    began: Numbers
    ended: Numbers
    process: Numbers
    reader: Numbers
    """Of each read of another transaction's version, sorted by reader."""
    read_key: Numbers
    read_from: Numbers
    """The writer, or ``NIL``."""
    read_micro: Numbers
    """The micro-operation that shows it."""
    writer: Numbers
    """Of each (transaction, key) that it wrote, sorted by writer."""
    write_key: Numbers
    keys: int
    before: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Writers of a key of which the first is known to come before ..."""
    after: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """... the second."""

    def __len__(self) -> int:
        return len(self.txn)

    @classmethod
    def of(
        cls,
        txns: Transactions,
        micro: MicroOperations,
        writes: Writes,
        last_read: Numbers,
        read_index: ReadIndex,
        level: Level,
        session_order: SessionOrder,
    ) -> Problem:
        committed = np.flatnonzero(read_index.committed)
        number = np.full(len(txns), -1, dtype=np.int64)
        number[committed] = np.arange(len(committed))
        reads = np.flatnonzero(last_read >= NOTHING)
        source = np.append(writes.txn, NIL)[last_read[reads]]
        # NOTHING and NIL are both −1, so that a read of nothing takes the last entry.
        kept = (source < 0) | (read_index.committed[source] & (source != micro.txn[reads]))
        reads, source = reads[kept], source[kept]
        read_from = np.where(source >= 0, number[source], NIL)
        reader, key = number[micro.txn[reads]], micro.key[reads]
        first = _first_of_each(reader, key, read_from)
        chosen = writes.is_last & read_index.committed[writes.txn] & ~writes.ambiguous[writes.key]
        return cls(
            txn=committed,
            level=level,
            session_order=session_order,
            began=txns.began[committed],
            ended=txns.ended[committed],
            process=txns.process[committed],
            reader=reader[first],
            read_key=key[first],
            read_from=read_from[first],
            read_micro=reads[first],
            writer=number[writes.txn[chosen]],
            write_key=writes.key[chosen],
            keys=len(micro.keys),
        )

    def with_ordered(self, before: Numbers, after: Numbers) -> Problem:
        """The problem in which these writers of a key, numbered as in the analysis, have a known order."""
        number = np.searchsorted(self.txn, np.stack([before, after]))
        return replace(self, before=number[0], after=number[1])

    def among(self, kept: Numbers) -> Problem:
        """The problem of these transactions, sorted: reads of versions that others wrote are left out."""
        number = np.full(len(self) + 1, -2, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        number[-1] = NIL  # so that NIL stays what it is
        reads = (number[self.reader] >= 0) & (number[self.read_from] >= NIL)
        written = number[self.writer] >= 0
        ordered = (number[self.before] >= 0) & (number[self.after] >= 0)
        return Problem(
            txn=self.txn[kept],
            level=self.level,
            session_order=self.session_order,
            began=self.began[kept],
            ended=self.ended[kept],
            process=self.process[kept],
            reader=number[self.reader[reads]],
            read_key=self.read_key[reads],
            read_from=number[self.read_from[reads]],
            read_micro=self.read_micro[reads],
            writer=number[self.writer[written]],
            write_key=self.write_key[written],
            keys=self.keys,
            before=number[self.before[ordered]],
            after=number[self.after[ordered]],
        )

    @property
    def orders_unread(self) -> bool:
        """Whether the order of two versions matters that no transaction read."""
        return self.level in (Level.PARALLEL_SNAPSHOT, Level.SNAPSHOT)


def _first_of_each(*columns: Numbers) -> Numbers:
    """The first position of each distinct row, sorted."""
    if not len(columns[0]):
        return np.zeros(0, dtype=np.int64)
    _, first = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    chosen: Numbers = np.sort(first)
    return chosen
