"""The order of each process: what it began once its last transaction had ended.

A process that crashed in a transaction of which no end is known has done what it did before that, and nothing is known
of the transaction's place among those that follow; nor of the place of one that began before the last had ended.
"""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.edges import PROCESS, Edges
from nemesis.checkers.cycles.transactions import NEVER, Mask, Transactions
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.compiled import compiled


def process_edges(txns: Transactions, chosen: Mask) -> Edges:
    """Return the edges from each chosen transaction to the chosen one that its process began next."""
    source, target = _successive(txns.process, chosen, txns.began, txns.ended, len(txns.processes))
    return Edges.of(PROCESS, source, target, np.full(len(source), -1, dtype=np.int64))


@compiled
def _successive(
    process: Numbers, chosen: Mask, began: Numbers, ended: Numbers, processes: int
) -> tuple[Numbers, Numbers]:
    last = np.full(processes, -1, np.int64)
    source = np.empty(len(process), np.int64)
    target = np.empty(len(process), np.int64)
    n = 0
    for txn in range(len(process)):
        if not chosen[txn]:
            continue
        before = last[process[txn]]
        if before >= 0 and ended[before] <= began[txn]:
            source[n], target[n] = before, txn
            n += 1
        if ended[txn] != NEVER:
            last[process[txn]] = txn
    return source[:n], target[:n]
