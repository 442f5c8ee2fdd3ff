"""Which writes were read, by whom first, and which reads hold what no transaction wrote.

A list that begins as the ones before it is looked at only where it is longer, so all reads together cost as much as the
longest list of each key.

A transaction in doubt has committed if a write of it was read. Under read uncommitted that proves nothing: the read may
be of what was rolled back later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nemesis.checkers.cycles.lookup import first_readers
from nemesis.checkers.cycles.transaction_rows import INFO, OK
from nemesis.checkers.cycles.transactions import READ, UNKNOWN, Mask, MicroOperations, Transactions
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """What the reads of transactions that ended ``ok`` show."""

    reader: Numbers
    """For each write the first read that holds it, −1 if none does."""
    garbage: Numbers
    """Reads that are the first to hold something that no transaction wrote."""
    committed: Mask
    """For each transaction, whether it certainly took effect: it ended ``ok``, or it is in doubt and a read shows a
    write of it, unless the model is read uncommitted."""

    @classmethod
    def of(
        cls,
        txns: Transactions,
        micro: MicroOperations,
        writes: Writes,
        is_prefix: Mask,
        *,
        proves_commits: bool,
    ) -> ReadIndex:
        """Return the index of reads under a model in which a read proves a commit, or does not."""
        is_read = (micro.code == READ) & (micro.count > UNKNOWN) & ~writes.ambiguous[micro.key]
        reader, has_garbage = first_readers(
            is_read,
            is_prefix,
            micro.key,
            micro.element_start,
            micro.count,
            micro.flat,
            writes.value,
            writes.first_slot,
            writes.slots,
            len(writes),
        )
        committed = txns.outcome == OK
        if proves_commits:
            read = np.zeros(len(txns), dtype=np.bool_)
            read[writes.txn[reader >= 0]] = True
            committed |= (txns.outcome == INFO) & read
        return cls(reader, np.flatnonzero(has_garbage), committed)
