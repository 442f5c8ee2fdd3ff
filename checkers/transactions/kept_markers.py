"""A log has the marker of each transaction of which it has records.

* **markers-kept**: the files of a broker hold the marker of a transaction as long as they hold a batch of it, if this
  broker has appended the marker and has not cut it since.
  Smallest break: broker 1 appends a marker at offset 1 for a transaction that begins at offset 0; its files end at
  offset 2, have the batch at offset 0, and no marker.

Why this is the promise: compaction removes a marker only after the records of its transaction, and after
``delete.retention.ms`` (KIP-534). Retention removes the beginning of a log, and a marker stands behind its records.
Without the marker the transaction is open for each reader of the log: a follower, a broker that starts, a consumer. It
ends with the producer's next marker, which may have the other outcome.

What a correct cluster does and is not convicted for: a marker that is cut is forgotten, and a log that is deleted
begins again. What a broker that is dead at the end wrote last may be lost: files that end before the marker prove
nothing. A marker without records may go at any time here.

Limits: whether a marker without records stays for ``delete.retention.ms`` is not judged. A file that cannot be read, or
one with damage before the marker, proves nothing.
Source: KIP-534; CleanedTransactionMetadata of Kafka's LogCleaner.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.breaks import markers as breaks
from nemesis.checkers.explain import markers as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.transactions.markers import RESIZES, WORKLOADS, is_deleted, kept_below
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_Producer = tuple[int | None, int | None]
"""Broker and producer id."""


class _Marker(NamedTuple):
    """A marker that a broker appended."""

    producer_id: int | None
    first_offset: int
    offset: int
    row: int


class _Batch(NamedTuple):
    """A batch in the files of a broker."""

    offset: int
    row: int


@dataclass(slots=True)
class _Files:
    """What the brokers' files of one partition hold, each list in the sequence of the log."""

    ends: dict[int | None, int] = field(default_factory=dict)
    """By broker; of logs that are whole up to there."""
    batches: dict[_Producer, list[_Batch]] = field(default_factory=lambda: defaultdict(list))
    markers: set[tuple[int | None, int | None]] = field(default_factory=set)
    """Broker and offset."""


@dataclass(slots=True)
class Report:
    """What one partition came to."""

    checked: int = 0
    """Transactions with a batch in a broker's files, counted once for each broker."""
    findings: list[Finding] = field(default_factory=list)


class KeptMarkers(Grouped[Report]):
    keys = ("topic", "partition")
    kinds = frozenset(
        {
            *(Kind.MARKER_APPENDED, Kind.STORED_MARKER, Kind.STORED_BATCH, Kind.STORED_LOG),
            *RESIZES,
        }
    )
    columns = (
        *("topic", "partition", "node", "offset", "first_offset", "producer_id"),
        *("log_start_offset", "log_end_offset", "step"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (MARKERS_KEPT,)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition = key
        report = Report()
        if topic is None:
            return report
        rows = list(segment.events(*self.columns))
        files = _files_of(rows)
        for node, markers in _appended(rows).items():
            for marker in markers:
                batch = _batch_of(files, node, marker)
                if batch is None or marker.offset >= files.ends.get(node, 0):
                    continue
                report.checked += 1
                if (node, marker.offset) not in files.markers:
                    report.findings.append(_finding(tp_name(topic, partition), node, marker, batch))
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        reports = [report for _, report in summaries]
        return [
            conclude(
                MARKERS_KEPT,
                checked=sum(report.checked for report in reports),
                findings=[item for report in reports for item in report.findings],
            )
        ]


def _appended(rows: list[Row]) -> dict[int | None, list[_Marker]]:
    """Return the markers that each broker has appended and not cut, of transactions that have data there."""
    logs: dict[int | None, list[_Marker]] = defaultdict(list)
    for row, event in rows:
        if event.kind == Kind.MARKER_APPENDED:
            first = -1 if event.first_offset is None else event.first_offset
            if first >= 0:
                marker = _Marker(event.producer_id, first, event.offset or 0, row)
                logs[event.node].append(marker)
        elif event.kind in RESIZES:
            end = _end_of(event)
            if end is not None:
                logs[event.node] = [item for item in logs[event.node] if item.offset < end]
    return logs


def _end_of(event: Event) -> int | None:
    """Return the offset below which a log keeps what it held; None for a replica that stops and keeps its log."""
    if event.kind == Kind.REPLICA_STOPPED:
        return 0 if is_deleted(event) else None
    return kept_below(event)


def _files_of(rows: list[Row]) -> _Files:
    files = _Files()
    for row, event in rows:
        if event.kind == Kind.STORED_LOG:
            files.ends[event.node] = event.log_end_offset or 0
        elif event.kind == Kind.STORED_MARKER:
            files.markers.add((event.node, event.offset))
        elif event.kind == Kind.STORED_BATCH:
            batch = _Batch(event.offset or 0, row)
            files.batches[event.node, event.producer_id].append(batch)
    for batches in files.batches.values():
        batches.sort()
    return files


def _batch_of(files: _Files, node: int | None, marker: _Marker) -> _Batch | None:
    """Return the first batch of the marker's transaction in the files of the broker."""
    batches = files.batches.get((node, marker.producer_id), [])
    index = bisect_left(batches, (marker.first_offset, -1))
    if index < len(batches) and batches[index].offset < marker.offset:
        return batches[index]
    return None


def _finding(tp: str, node: int | None, marker: _Marker, batch: _Batch) -> Finding:
    sentence = (
        f"The files of broker {node} have a batch of producer {marker.producer_id} at offset {batch.offset} of {tp}, "
        f"but not the marker at offset {marker.offset} that ended its transaction."
    )
    return finding(MARKERS_KEPT.name, tp, sentence, marker.row, batch.row)


MARKERS_KEPT: Final = Property(
    name="markers-kept",
    promise="A log has the marker of each transaction of which it has records.",
    unit="transactions in files",
    unknown="No files hold a batch of a transaction whose marker a broker has traced.",
    source="KIP-534; CleanedTransactionMetadata of Kafka's LogCleaner.",
    check=KeptMarkers,
    decided_from=frozenset({EventSource.TRACES, EventSource.STORED_LOGS}),
    workloads=WORKLOADS,
    recorded_since=10,
    reason=explain.markers_kept,
    breaks=breaks.MARKERS_KEPT,
)
