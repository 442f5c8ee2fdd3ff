"""Transactions over logs: what of their order do the logs themselves show?

Of two records of a log the one at the smaller offset was appended first (ww), and who polled a record came after its
sender (wr). A poll that did not return a record says nothing (it may lag), so there are no anti-dependencies.

* **G1c**: transactions polled each other's records, in a circle; with the order of each process (``G1c-process``) or
  real time (``G1c-realtime``) also where that closes the circle. Who reads what is committed is given no such
  records; who reads uncommitted may be: that is the consistency model ``read-uncommitted``.
  Smallest break: T1 sends 1 and polls 2, T2 sends 2 and polls 1.
* **G0**, and **G1c** whose circle needs an order of appends: reported, and allowed. Kafka does not isolate the appends
  of transactions that are under way together (KIP-98): a partition may have the first one's record, the second one's,
  and another one of the first.

Each send or poll by itself counts as a transaction, too. Only what succeeded is looked at: of others nobody knows what
they polled. Limits: a value that was sent twice to a log is left out (``duplicate`` tells of it); all sends and polls
fit into memory, and one task judges them. Source: jepsen.tests.kafka, for what logs tell of transactions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checkers.columns import UNSET, Numbers
from checkers.cycles.log_rows import LogRows, Placed
from checkers.cycles.models import SERIALIZABLE, Level, Model
from checkers.findings import finding
from checkers.fold import Results, Whole, conclude
from checkers.linearizable.elements import NONE, numbered
from checkers.model import Finding, Verdict
from checkers.segment import Segment
from history.events import Kind
from history.foreign.logs import process_of

if TYPE_CHECKING:
    from checkers.cycles.edges import Edges
    from checkers.cycles.search import Cycle, Step
    from checkers.cycles.transactions import Transactions

NAMES: Final = ("G0", "G1c", "G1c-process", "G1c-realtime")
ALLOWED: Final = (
    "Kafka does not isolate appends of transactions that are under way together, and allows that."
)
BY_APPENDS: Final = {
    "G0": "by the order of their appends",
    "G1c": "by the order of their appends and who polled them",
}
BY_POLLS: Final = {
    "G1c": "by who polled what they sent",
    "G1c-process": "by who polled what they sent, and by the order of a process",
    "G1c-realtime": "by who polled what they sent, and by real time",
}


class LogTransactions(Whole[LogRows]):
    name = "log-transactions"
    properties = NAMES
    kinds = frozenset({Kind.INVOKE, Kind.OK})
    columns = ("f", "op", "value", "offset", "offsets", "values", "topic")

    def __init__(self, model: Model = SERIALIZABLE) -> None:
        self.model = model

    def part(self, segment: Segment) -> LogRows:
        return LogRows.of(segment)

    def judge(self, parts: list[LogRows]) -> Results:
        rows = LogRows.joined(parts)
        if not len(rows.op):
            return [conclude(name, checked=0) for name in NAMES]
        analysis = _Analysis.of(rows)
        findings: dict[str, list[Finding]] = defaultdict(list)
        allowed = (
            "" if self.model.level >= Level.G1 else f"The model {self.model.name} allows that."
        )
        for cycle in analysis.circles_of_polls():
            findings[cycle.name].append(analysis.tell(cycle, BY_POLLS[cycle.name], allowed))
        for cycle in analysis.circles_of_appends():
            findings[cycle.name].append(analysis.tell(cycle, BY_APPENDS[cycle.name], ALLOWED))
        return [
            conclude(
                name,
                checked=len(analysis.placed) if name == "G0" else analysis.polls_known,
                unit="acknowledged sends" if name == "G0" else "records polled",
                findings=findings[name],
            )
            for name in NAMES
        ]


@dataclass(frozen=True, slots=True)
class _Analysis:
    rows: LogRows
    txns: Transactions
    txn: Numbers
    """Of each part that succeeded its transaction."""
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
    def of(cls, rows: LogRows) -> _Analysis:
        # numba takes half a second to import, which a history without transactions need not wait for.
        from checkers.cycles.edges import WR, WW, Edges

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

    def circles_of_polls(self) -> list[Cycle]:
        from checkers.cycles.process_order import process_edges
        from checkers.cycles.search import cycles_among

        everyone = np.ones(len(self.txns), dtype=np.bool_)
        return cycles_among(self.txns, self.reads, process_edges(self.txns, everyone))

    def circles_of_appends(self) -> list[Cycle]:
        """Those of appends and polls that need an append, and nothing else."""
        from checkers.cycles.edges import WW, Edges
        from checkers.cycles.search import cycles_among

        both = Edges.joined([self.appends, self.reads])
        found = cycles_among(self.txns, both, self.appends.where(np.zeros(len(self.appends), bool)))
        return [
            cycle
            for cycle in found
            if cycle.name in BY_APPENDS and any(step.kind == WW for step in cycle.steps)
        ]

    def tell(self, cycle: Cycle, by: str, allowed: str) -> Finding:
        """Return the finding of a cycle: a sentence, the reason of each step, the rows that show it; ``allowed`` says
        why it is held against nobody, or nothing.
        """
        names = [self.txns.name(step.source) for step in cycle.steps]
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        sentence = f"{listed} have no order: each comes before the next, and the last before the first, {by}."
        if allowed:
            sentence += f" {allowed}"
        verdict = Verdict.VALID if allowed else Verdict.INVALID
        steps = [self._reason(step) for step in cycle.steps]
        steps.append(f"So {names[0]} would have come before itself.")
        rows = {row for step in cycle.steps for row in self._shown_by(step)}
        logs = dict.fromkeys(log for step in cycle.steps for log in self._log_of(step))
        return finding(
            cycle.name, ", ".join(logs), sentence, *sorted(rows), verdict=verdict, steps=steps
        )

    def _reason(self, step: Step) -> str:
        from checkers.cycles.edges import PROCESS, WR, WW

        a, b = self.txns.name(step.source), self.txns.name(step.target)
        if step.kind == WR:
            polled = self.rows.polled
            record = f"{polled.value[step.via]} of {self._log_of(step)[0]} (offset {polled.offset[step.via]})"
            because = f"{b} polled {record}, which {a} sent"
        elif step.kind == WW:
            sent, earlier = self.rows.sent, self.before[step.via]
            because = (
                f"in {self._log_of(step)[0]}, {sent.value[earlier]} of {a} is at offset {sent.offset[earlier]}, and "
                f"{sent.value[step.via]} of {b} behind it, at {sent.offset[step.via]}"
            )
        elif step.kind == PROCESS:
            process = self.txns.processes[int(self.txns.process[step.target])]
            because = f"process {process} had ended {a} when it began {b}"
        else:
            because = f"{a} had ended before {b} began"
        return f"{a} comes before {b}: {because}."

    def _shown_by(self, step: Step) -> list[int]:
        from checkers.cycles.edges import WR, WW

        if step.kind == WR:
            sent = self.rows.sent.part[self.sender[step.via]]
            parts = [sent, self.rows.polled.part[step.via]]
        elif step.kind == WW:
            parts = [self.rows.sent.part[step.via], self.rows.sent.part[self.before[step.via]]]
        else:
            return [int(self.txns.row[step.source]), int(self.txns.row[step.target])]
        return [int(self.rows.row[part]) for part in parts]

    def _log_of(self, step: Step) -> list[str]:
        from checkers.cycles.edges import WR, WW

        if step.kind not in (WR, WW):
            return []
        placed = self.rows.polled if step.kind == WR else self.rows.sent
        return [f"key {self.rows.logs[int(placed.log[step.via])]}"]


def _transactions(rows: LogRows) -> tuple[Transactions, Numbers]:
    """Return the transactions as they ended, and of each part that succeeded its transaction.

    Parts of one are what one process ended at one time (``history.foreign.logs``).
    """
    from checkers.cycles.rows import OK
    from checkers.cycles.transactions import Transactions

    names: dict[str, int] = {}
    base = [names.setdefault(process_of(word), len(names)) for word in rows.processes]
    process = np.array([*base, NONE], dtype=np.int64)[rows.process]
    order = np.lexsort((rows.op, process, rows.ended))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (np.diff(rows.ended[order]) != 0) | (np.diff(process[order]) != 0)
    txn = np.empty(len(order), dtype=np.int64)
    txn[order] = np.cumsum(is_first) - 1
    first = order[is_first]
    by_op = np.argsort(rows.began_op, kind="stable")
    place = np.searchsorted(rows.began_op[by_op], rows.op[first])
    at = np.append(by_op, NONE)[place]
    is_begun = np.append(rows.began_op, UNSET)[at] == rows.op[first]
    txns = Transactions(
        op=rows.op[first],
        outcome=np.full(len(first), OK, dtype=np.int8),
        process=process[first],
        processes=list(names),
        began=np.where(is_begun, np.append(rows.began_at, UNSET)[at], UNSET),
        ended=rows.ended[first],
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
