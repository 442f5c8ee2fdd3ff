"""From sends and polls to circles of transactions: the order of the steps. ``log_transactions`` says what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nemesis.checkers.cycles.edges import WR, WW, Edges
from nemesis.checkers.cycles.log_rows import LogRows, Placed
from nemesis.checkers.cycles.process_order import process_edges
from nemesis.checkers.cycles.search import Cycle, cycles_among
from nemesis.checkers.cycles.transaction_rows import INFO, OK
from nemesis.checkers.cycles.transactions import NEVER, Transactions
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.framework.columns import UNSET
from nemesis.checkers.linearizable.elements import NONE, numbered
from nemesis.history.foreign.logs import process_of

NAMES_OF_APPENDS: Final = ("G0", "G1c")
"""What a circle of appends and polls is called; real time says nothing about appends that interleave."""


@dataclass(frozen=True, slots=True)
class LogAnalysis:
    rows: LogRows
    txns: Transactions
    txn: Numbers
    """Of each part its transaction."""
    reads: Edges
    """From the sender of a record to who polled it; each shown by an entry of ``rows.polled``."""
    appends: Edges
    """From the sender of a record to the sender of the next; each shown by the later one's entry of ``rows.sent``."""
    sender: Numbers
    """For each entry of ``rows.polled`` the one of ``rows.sent``, or ``NONE``."""
    before: Numbers
    """For each entry of ``rows.sent`` the one at the next smaller offset."""
    placed: Numbers
    """The entries of ``rows.sent`` of which the offset is known, by log and offset."""
    polls_known: int
    """How many records were polled whose sender is known."""

    @classmethod
    def of(cls, rows: LogRows) -> LogAnalysis:
        txns, txn = _transactions(rows)
        sent, polled = rows.sent, rows.polled
        sender = _senders(sent, polled)
        known = np.flatnonzero(sender != NONE)
        source, target = txn[sent.part[sender[known]]], txn[polled.part[known]]
        _, once = np.unique(source * len(txns) + target, return_index=True)
        reads = Edges.of(WR, source[once], target[once], known[once])
        placed = np.flatnonzero(sent.offset >= 0)
        placed = placed[np.lexsort((sent.offset[placed], sent.log[placed]))]
        follows = (np.diff(sent.log[placed]) == 0) & (np.diff(sent.offset[placed]) > 0)
        earlier, later = placed[:-1][follows], placed[1:][follows]
        before = np.full(len(sent.part), NONE, dtype=np.int64)
        before[later] = earlier
        appends = Edges.of(WW, txn[sent.part[earlier]], txn[sent.part[later]], later)
        return cls(rows, txns, txn, reads, appends, sender, before, placed, len(known))

    def precommitted(self) -> Numbers:
        """The entries of ``rows.polled`` that the transaction itself sent."""
        known = np.flatnonzero(self.sender != NONE)
        sent, polled = self.rows.sent, self.rows.polled
        own = self.txn[sent.part[self.sender[known]]] == self.txn[polled.part[known]]
        precommitted: Numbers = known[own]
        return precommitted

    def cycles_of_polls(self) -> list[Cycle]:
        everyone = np.ones(len(self.txns), dtype=np.bool_)
        return cycles_among(self.txns, self.reads, process_edges(self.txns, everyone))

    def cycles_of_appends(self) -> list[Cycle]:
        """Those of appends and polls that need an append, and nothing else."""
        both = Edges.joined([self.appends, self.reads])
        cycles = cycles_among(
            self.txns, both, self.appends.where(np.zeros(len(self.appends), bool))
        )
        return [
            cycle
            for cycle in cycles
            if cycle.name in NAMES_OF_APPENDS and any(step.kind == WW for step in cycle.steps)
        ]


def _transactions(rows: LogRows) -> tuple[Transactions, Numbers]:
    """Return the transactions as they ended, and of each part its transaction.

    Of one in doubt it is unknown when it ended. Parts of one are what one process ended at one time, or, without a
    completion, began at one time (``nemesis.history.foreign.logs``).
    """
    names: dict[str, int] = {}
    base = [names.setdefault(process_of(word), len(names)) for word in rows.processes]
    process = np.array([*base, NONE], dtype=np.int64)[rows.process]
    permutation = np.lexsort((rows.op, ~rows.is_ended, process, rows.ended))
    is_first = np.ones(len(permutation), dtype=np.bool_)
    is_first[1:] = (np.diff(rows.ended[permutation]) != 0) | (np.diff(process[permutation]) != 0)
    is_first[1:] |= np.diff(rows.is_ended[permutation])
    txn = np.empty(len(permutation), dtype=np.int64)
    txn[permutation] = np.cumsum(is_first) - 1
    first = permutation[is_first]
    by_op = np.argsort(rows.began_op, kind="stable")
    position = np.searchsorted(rows.began_op[by_op], rows.op[first])
    began_index = np.append(by_op, NONE)[position]
    is_begun = np.append(rows.began_op, UNSET)[began_index] == rows.op[first]
    txns = Transactions(
        op=rows.op[first],
        outcome=np.where(rows.is_ok[first], OK, INFO).astype(np.int8),
        process=process[first],
        processes=list(names),
        began=np.where(is_begun, np.append(rows.began_at, UNSET)[began_index], UNSET),
        ended=np.where(rows.is_ok[first], rows.ended[first], NEVER),
        row=rows.row[first],
        problems=(),
    )
    return txns, txn


def _senders(sent: Placed, polled: Placed) -> Numbers:
    """For each record that was polled the entry of the send of its value to its log; ``NONE`` if there is not one."""
    numbering = numbered((sent.log, sent.value), (polled.log, polled.value))
    of_sent, of_polled = numbering.ids
    sender = np.full(len(numbering), NONE, dtype=np.int64)
    sender[of_sent] = np.arange(len(of_sent))
    sender[np.bincount(of_sent, minlength=len(numbering)) > 1] = NONE
    return sender[of_polled]
