"""Transactions that stay open for too long, and so hold the last stable offset.

* **hanging-transaction**: a transaction that is open in the log of a partition's last leader when the run ends is not
  older than the time-out of its producer, the interval in which coordinators look for such transactions, and the time
  that a cluster may take to recover (``recovery_bound``). The time counts from its first batch or, if that is later,
  from when the coordinator added the partition to it, and without faults. Smallest break: a transaction with a time-out
  of 5 ms begins at 1 ms, and the run ends a second later.

Why this is the promise: consumers of committed records read up to the last stable offset, which is the first offset of
the oldest open transaction. A coordinator aborts what is open for longer than the time-out (KIP-98). A transaction that
no coordinator knows of is never ended, so consumers wait for ever (KIP-664, KIP-890).

What a correct cluster does and is not convicted for: a transaction that is younger when the run ends is ``unknown``:
its end was still due. Also ``unknown`` is what the machine may have delayed, and a transaction whose time-out no
coordinator has traced. A marker or a first batch that is cut from the log counts as if it had never been there. While a
fault is in force nothing is due. Where a fault moved a wall clock, by which coordinators measure time-outs, an open
transaction is ``unknown``.

Limit: the last leader's own trace counts; a run that ends without quiet decides little. The last second of a run
does not count, since how late the harness ran is measured up to there only.
Source: KIP-98, KIP-664; TransactionCoordinator.abortTimedOutTransactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.breaks import hanging as breaks
from nemesis.checkers.explain import markers as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.liveness import recovery_bound, unexplained
from nemesis.checkers.transactions.markers import WORKLOADS, kept_below
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import ABORT_INTERVAL

_END: Final = "end"
_CLOCKS: Final = "clock"
"""In the names of faults that move wall clocks."""
_MS: Final = 1_000_000
_CUTS: Final = frozenset({Kind.TRUNCATE, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED})


class Open(NamedTuple):
    """A transaction that is open at the end."""

    producer_id: int
    offset: int
    node: int
    row: int
    since: int
    """When it began, or its partition was added, in ns."""
    timeout_ms: int | None


@dataclass(slots=True)
class Report:
    """What one partition came to, or the run."""

    opened: int = 0
    open: list[Open] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    """Of the run: settings, phases, faults."""


class HangingTransactions(Grouped[Report]):
    keys = ("topic", "partition")
    kinds = frozenset(
        {
            *(Kind.TRANSACTION_OPENED, Kind.MARKER_APPENDED, Kind.TRANSACTION_PARTITION_ADDED),
            *_CUTS,
            Kind.REPLICA_STOPPED,
            Kind.BECOME_LEADER,
            *unexplained.KINDS,
        }
    )
    columns = (
        *("topic", "partition", "node", "offset", "producer_id", "leader_epoch"),
        *("log_start_offset", "log_end_offset", "timeout_ms", "step", *unexplained.COLUMNS),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HANGING_TRANSACTION,)

    def check(self, key: Key, segment: Segment) -> Report:
        rows = list(segment.events(*self.columns))
        if key[0] is None:
            return Report(rows=rows)
        opened = sum(event.kind == Kind.TRANSACTION_OPENED for _, event in rows)
        return Report(opened, list(_open_at_end(rows)) if opened else [])

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        run = [item for _, report in summaries for item in report.rows]
        findings = [
            item
            for (topic, partition), report in summaries
            for transaction in report.open
            for item in _judge(tp_name(topic, partition), transaction, run)
        ]
        opened = sum(report.opened for _, report in summaries)
        return conclude(HANGING_TRANSACTION, checked=opened, findings=findings)


def _open_at_end(rows: Sequence[Row]) -> Iterator[Open]:
    """Yield the transactions that are open in the log of the last leader."""
    leaders = [event for _, event in rows if event.kind == Kind.BECOME_LEADER]
    last = max(leaders, key=lambda event: (event.leader_epoch or 0, event.time), default=None)
    if last is None:
        return
    added = {
        event.producer_id: event
        for _, event in rows
        if event.kind == Kind.TRANSACTION_PARTITION_ADDED
    }
    for producer_id, (row, event) in _open_in_log(rows, last.node).items():
        known = added.get(producer_id)
        times = [event.time, *(() if known is None else (known.time,))]
        timeout_ms = None if known is None else known.timeout_ms
        node, offset = event.node or 0, event.offset or 0
        yield Open(producer_id, offset, node, row, max(times), timeout_ms)


def _open_in_log(rows: Sequence[Row], node: int | None) -> dict[int, Row]:
    """Return the first batches of the open transactions in the log of this broker, by producer."""
    steps: dict[int, list[Row]] = defaultdict(list)
    """By producer, the first batches and markers that the log has."""
    for row, event in rows:
        if event.node != node:
            continue
        if event.kind in (Kind.TRANSACTION_OPENED, Kind.MARKER_APPENDED):
            steps[event.producer_id if event.producer_id is not None else -1].append((row, event))
        elif event.kind in _CUTS:
            end = kept_below(event)
            for producer_id, known in steps.items():
                steps[producer_id] = [item for item in known if (item[1].offset or 0) < end]
        elif event.kind == Kind.REPLICA_STOPPED and event.step in ("deleting", "delete"):
            steps.clear()
    return {
        producer_id: known[-1]
        for producer_id, known in sorted(steps.items())
        if known and known[-1][1].kind == Kind.TRANSACTION_OPENED
    }


def _judge(tp: str, transaction: Open, run: Sequence[Row]) -> Iterator[Finding]:
    """Say of an open transaction whether its end is overdue."""
    ends = [row for row, event in run if event.phase == _END]
    windows = unexplained.without_faults(run, _END)
    start, stop = windows[-1] if windows else (0, 0)
    end = unexplained.measured_until(run, stop)
    since = max(start, transaction.since)
    lasted_ms = max(end - since, 0) // _MS
    bound_ms = _bound_ms(transaction, run)
    doubt = None
    if bound_ms is None:
        doubt = "how long it may take is not recorded"
    elif lasted_ms <= bound_ms:
        doubt = f"the coordinator may take {bound_ms:,} ms"
    elif any(_CLOCKS in (event.fault or "") for _, event in run):
        doubt = "a wall clock was moved, by which coordinators measure time-outs"
    else:
        doubt = unexplained.excuse(run, since, end, lasted_ms - bound_ms)
    sentence = (
        f"A transaction of producer {transaction.producer_id} holds the last stable offset of {tp} at offset "
        f"{transaction.offset}: it was open for {lasted_ms:,} ms without a fault when the run ended"
    )
    verdict = Verdict.INVALID if doubt is None else Verdict.UNKNOWN
    sentence += (
        f", and the coordinator may take {bound_ms:,} ms." if doubt is None else f"; {doubt}."
    )
    yield finding(
        HANGING_TRANSACTION.name,
        tp,
        sentence,
        *sorted([transaction.row, *ends[-1:]]),
        verdict=verdict,
    )


def _bound_ms(transaction: Open, run: Sequence[Row]) -> int | None:
    recovery = recovery_bound.bound_ms(run)
    interval = next(
        (event.duration_ms for _, event in run if event.setting == ABORT_INTERVAL), None
    )
    if None in (recovery, interval, transaction.timeout_ms):
        return None
    return (recovery or 0) + (interval or 0) + (transaction.timeout_ms or 0)


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
