"""A broker that has stopped in order has its logs on the medium, and opens them as it closed them.

* **clean-stop-keeps-logs**: when a broker has closed a log in a clean stop, its next process finds the log in the same
  log directory with the same start, the same end and the same high watermark, whether or not the machine was without
  power meanwhile.
  Smallest break: broker 1 closes a log that ends at 5; its next process opens it, and it ends at 4.

Why this is the promise: a stop syncs each log and checkpoints the high watermarks, the recovery points and the starts
of the logs; only then it writes the mark of a clean stop. The next start takes the mark at its word: it does not
recover the logs, and counts all that is there as synced. A log that was marked and not synced loses records that
nothing misses, and has a hole if the length of a file reached the medium and its bytes did not.

The idea: a broker traces the logs of a directory after the mark is written, and each log when it opens it.

What a correct cluster does and is not convicted for: a process that is killed, or that loses its power before the mark
is written, traces no closed log; a directory that fails in the stop, or at the next start, has no log to compare; a
log that moves has another log directory; a topic that was deleted meanwhile may be created again, with another id. Only
the next process counts: one after it may have been killed.

Limits: a log that the next process does not open, or opens in another directory, is not judged: its directory may have
failed. Of the records only their number is compared; ``log-files-agree`` and ``log-matching`` judge their bytes. Logs
of replicas that move to another directory are not traced.
Source: LogManager.shutdown, LogLoader.load; CleanShutdownFileHandler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import clean_stops as breaks
from nemesis.checkers.explain import clean_stops as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_LogKey = tuple[str | None, int | None, str | None]
"""Topic, partition, log directory."""


@dataclass(slots=True)
class _Broker:
    """The logs of one broker across its processes."""

    closed: dict[_LogKey, Row] = field(default_factory=dict)
    """By its present process."""
    expected: dict[_LogKey, Row] = field(default_factory=dict)
    """What the process before has closed, and the present one has not opened yet."""

    def starts(self) -> None:
        self.expected, self.closed = self.closed, {}


class CleanStops(EventListCheck):
    kinds = frozenset({Kind.BROKER_STARTED, Kind.LOG_CLOSED, Kind.LOG_LOADED})
    columns = (
        *("topic", "topic_id", "partition", "node", "log_dir"),
        *("log_start_offset", "log_end_offset", "high_watermark"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CLEAN_STOP_KEEPS_LOGS,)

    def judge(self, rows: list[Row]) -> Results:
        brokers: dict[str, _Broker] = {}
        findings: list[Finding] = []
        opened = compared = 0
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
            broker = brokers.setdefault(event.process, _Broker())
            key = (event.topic, event.partition, event.log_dir)
            if event.kind == Kind.BROKER_STARTED:
                broker.starts()
            elif event.kind == Kind.LOG_CLOSED:
                broker.closed[key] = (row, event)
            else:
                opened += 1
                closed = broker.expected.pop(key, None)
                # A topic of the same name may have been created meanwhile.
                if closed is not None and closed[1].topic_id == event.topic_id:
                    compared += 1
                    findings += _differences(closed, (row, event))
        return conclude(
            CLEAN_STOP_KEEPS_LOGS,
            checked=opened,
            findings=findings,
            numbers={"after_clean_stops": float(compared)},
        )


def _differences(closed: Row, opened: Row) -> list[Finding]:
    (closed_row, before), (opened_row, after) = closed, opened
    differing = [
        f"{name} was {was} and is {now}"
        for name, was, now in zip(
            ("its start", "its end", "its high watermark"),
            _extent(before),
            _extent(after),
            strict=True,
        )
        if was != now
    ]
    if not differing:
        return []
    tp = tp_name(after.topic, after.partition)
    sentence = (
        f"Broker {after.node} opened its log of {tp} after a clean stop: {', '.join(differing)}."
    )
    return [finding(CLEAN_STOP_KEEPS_LOGS.name, tp, sentence, closed_row, opened_row)]


def _extent(event: Event) -> tuple[int | None, int | None, int | None]:
    return (event.log_start_offset, event.log_end_offset, event.high_watermark)


CLEAN_STOP_KEEPS_LOGS: Final = Property(
    name="clean-stop-keeps-logs",
    promise="A broker that has stopped in order opens its logs as it closed them, also after a loss of power.",
    unit="logs that brokers opened",
    unknown="No broker traced that it opened a log.",
    source="LogManager.shutdown, LogLoader.load; CleanShutdownFileHandler.",
    check=CleanStops,
    decided_from=frozenset({EventSource.TRACES}),
    recorded_since=13,
    reason=explain.clean_stop_keeps_logs,
    breaks=breaks.CLEAN_STOP_KEEPS_LOGS,
)
