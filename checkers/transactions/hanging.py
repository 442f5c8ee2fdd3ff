"""Transactions that stay open for too long, and so hold the last stable offset.

* **hanging-transaction**: a transaction is open in the log of a partition for no longer than the time-out of its
  producer, the interval in which coordinators look for such transactions, and the time that a cluster may take to
  recover (``overdue``). The time counts from its first batch, and without faults, until its marker is appended or the
  run ends (``open_spans``).
  Smallest breaks: a transaction with a time-out of 5 ms begins at 1 ms, and the run ends a second later; the same if
  its marker is appended just before that; the same if that is the marker of the producer's next transaction.

Why this is the promise: consumers of committed records read up to the last stable offset, which is the first offset of
the oldest open transaction. A coordinator aborts what is open for longer than the time-out (KIP-98). A transaction that
no coordinator knows of is never ended, so consumers wait for ever (KIP-664, KIP-890).

What a correct cluster does and is not convicted for: a transaction that is younger when the run ends is ``unknown``:
its end was still due. Also ``unknown`` is what the machine may have delayed, and a transaction whose time-out no
coordinator has traced. A marker or a first batch that is cut from the log counts as if it had never been there. While a
fault is in force nothing is due, nor in the 30 s after a power cut of the broker that takes the marker (``overdue``).
Where a fault moved a wall clock, by which coordinators measure time-outs, an open transaction is ``unknown``. Where the
marker or the transaction itself may be lost, because the last replica of the partition or of one of
``__transaction_state`` was struck, the finding is allowed.

Limit: the last leader's own trace counts; a run that ends without quiet decides little. The last second of a run
does not count, since how late the harness ran is measured up to there only.
Source: KIP-98, KIP-664; TransactionCoordinator.abortTimedOutTransactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.breaks import hanging as breaks
from nemesis.checkers.explain import markers as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.transactions import open_spans
from nemesis.checkers.transactions.markers import WORKLOADS
from nemesis.checkers.transactions.open_spans import Open
from nemesis.checkers.transactions.overdue import MS, RunTime
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource


@dataclass(slots=True)
class Report:
    """What one partition came to, or the run."""

    opened: int = 0
    open: list[Open] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    """Of the run: settings, phases, faults; of a partition: the events that show its transactions."""


class HangingTransactions(Grouped[Report]):
    keys = ("topic", "partition")
    kinds = frozenset({*open_spans.KINDS, *unexplained.KINDS, *losses.KINDS})
    columns = (*open_spans.COLUMNS, *unexplained.COLUMNS, *losses.COLUMNS, "targets")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HANGING_TRANSACTION,)

    def check(self, key: Key, segment: Segment) -> Report:
        rows = list(segment.events(*self.columns))
        if key[0] is None:
            return Report(rows=rows)
        if not any(event.kind == Kind.TRANSACTION_OPENED for _, event in rows):
            return Report()
        spans = [*open_spans.ended(rows), *open_spans.open_at_end(rows)]
        shown = {row for span in spans for row in (span.row, span.end_row)}
        opened = max(open_spans.opened_by_leaders(rows), len(spans))
        return Report(opened, spans, [item for item in rows if item[0] in shown])

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        rows = [item for _, report in summaries for item in report.rows]
        run = RunTime([item for item in rows if item[1].kind in unexplained.KINDS])
        permitted = losses.Losses(rows)
        findings = [
            permitted.allow(item, item.key, losses.TRANSACTIONS_TOPIC)
            for (topic, partition), report in summaries
            for transaction in report.open
            for item in _judge(tp_name(topic, partition), transaction, run)
        ]
        opened = sum(report.opened for _, report in summaries)
        return conclude(HANGING_TRANSACTION, checked=opened, findings=findings)


def _judge(tp: str, transaction: Open, run: RunTime) -> Iterator[Finding]:
    """Say of a transaction whether its end came too late, or is overdue."""
    if transaction.ended is None:
        start, stop = run.windows_of(transaction.leader)[-1]
        yield _overdue(tp, transaction, run, start, run.measured_until(stop))
        return
    bound_ms = run.bound_ms(transaction.timeout_ms)
    for start, stop in run.windows_of(transaction.leader):
        end = min(stop, transaction.ended)
        if bound_ms is not None and end - max(start, transaction.since) > bound_ms * MS:
            yield _overdue(tp, transaction, run, start, end)
            return


def _overdue(tp: str, transaction: Open, run: RunTime, start: int, end: int) -> Finding:
    """``start`` and ``end`` (ns): of a time without faults."""
    since = max(start, transaction.since)
    bound_ms = run.bound_ms(transaction.timeout_ms)
    doubt = run.doubt(since, end, bound_ms)
    is_open = transaction.ended is None
    sentence = (
        f"A transaction of producer {transaction.producer_id} {'holds' if is_open else 'held'} the last stable offset "
        f"of {tp} at offset {transaction.offset}: it was open for {max(end - since, 0) // MS:,} ms without a fault "
        f"{'when the run ended' if is_open else 'before its marker was appended'}"
    )
    sentence += f", and it may last {bound_ms:,} ms." if doubt is None else f"; {doubt}."
    verdict = Verdict.INVALID if doubt is None else Verdict.UNKNOWN
    last = run.end_row if is_open else transaction.end_row
    rows = sorted([transaction.row, *(() if last is None else (last,))])
    return finding(HANGING_TRANSACTION.name, tp, sentence, *rows, verdict=verdict)


HANGING_TRANSACTION: Final = Property(
    name="hanging-transaction",
    promise="A transaction ends within its time-out and the interval in which coordinators look for it.",
    unit="transactions in logs",
    unknown="No transaction was traced, or one was open at the end that was still due to be ended.",
    source="KIP-98, KIP-664, KIP-890; TransactionCoordinator.abortTimedOutTransactions.",
    check=HangingTransactions,
    decided_from=frozenset({EventSource.TRACES, EventSource.HARNESS, EventSource.FAULTS}),
    workloads=WORKLOADS,
    recorded_since=10,
    reason=explain.hanging_transaction,
    breaks=breaks.HANGING_TRANSACTION,
)
