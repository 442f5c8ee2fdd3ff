"""A tombstone stays for ``delete.retention.ms`` after the first compaction that passes it.

**tombstones-kept**: (a) a broker's files hold an acknowledged tombstone that is the last record of its key, unless of
two compactions that passed its offset the second began at least ``delete.retention.ms`` after the first; (b) a delete
horizon in a batch is ``delete.retention.ms`` after the beginning of a compaction that passed the batch.
Smallest break: ``delete.retention.ms`` is 10; a tombstone is acknowledged at offset 0; compactions that begin at 20 ms
and at 25 ms of the day pass it; the files of broker 1 begin at offset 0, end at 2 and have no batch at 0.

Why this is the promise: a consumer that reads the log from its start within that time learns of each deletion
(KIP-534). The first compaction that passes a tombstone writes the delete horizon into its batch, and a follower that
fetches the batch has it, too. So any broker may have set it, and any later compaction may remove the tombstone.

What a correct cluster does and is not convicted for: a wall clock that a fault has moved, since brokers' own clocks
decide and their traces state what these showed; a tombstone that another send of its key may supersede, of unknown
outcome among them; one that a log may have lost, because a replica was cut or opened at or below its offset after the
acknowledgement, or after an unclean election; topics that were deleted, or whose settings were written more than once.
A log may end before a tombstone or begin behind it, and damage proves nothing.

Limits: a batch with further records hides that its tombstone is gone. That a tombstone goes at last, and that no older
record of its key is read after it, is not judged: a follower that was away for longer than ``delete.retention.ms`` may
have missed the tombstone. A horizon that each compaction sets again is a time after a compaction, too.
Source: KIP-534; Cleaner.cleanInto and MemoryRecords.filterTo of Kafka 3.9; ``delete.retention.ms`` in Kafka's
documentation of topic configurations.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import tombstones as breaks
from nemesis.checkers.explain import tombstones as explain
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Grouped, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.liveness.left_logs import settings_of
from nemesis.checkers.unclean import COLUMNS as ELECTION_COLUMNS
from nemesis.checkers.unclean import elections_in
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import DELETE_RETENTION

_OWN: Final = "delete.retention.ms"
"""A topic's own setting."""
_BROKERS: Final = "/config/brokers"
_OPENS: Final = frozenset({Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE})
"""After these a log may lack what it held."""
_SENDS: Final = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL})
_ALL_REPLICAS: Final = -1


class Compaction(NamedTuple):
    """A broker has compacted the segments with these offsets."""

    offset: int
    last_offset: int
    wall_ms: int
    """When the compaction began, by the broker's wall clock."""
    time: int
    row: int

    def passes(self, offset: int) -> bool:
        """Whether a record at the offset was among what was compacted."""
        return self.offset <= offset <= self.last_offset


class Missing(NamedTuple):
    """A tombstone that the files of a broker lack."""

    tp: str
    node: int | None
    offset: int
    between_ms: int | None
    """The longest time from one compaction to a later one; None if fewer than two passed the tombstone."""
    rows: tuple[int, ...]


class Horizon(NamedTuple):
    """A delete horizon in the files of a broker."""

    tp: str
    node: int | None
    offset: int
    horizon_ms: int
    begun_ms: tuple[int, ...]
    """When the compactions began that passed the batch."""
    row: int


@dataclass(slots=True)
class Report:
    """What one key came to: without a topic, the configuration."""

    missing: list[Missing] = field(default_factory=list)
    horizons: list[Horizon] = field(default_factory=list)
    kept: int = 0
    """Tombstones in files."""
    configured: list[Row] = field(default_factory=list)
    logs: int = 0
    """Logs whose files were read."""


@dataclass(slots=True)
class _Send:
    """A record with a key, as its producer knows it."""

    key: int
    is_tombstone: bool
    invoke_time: int
    offset: int | None = None
    """None while it is not known."""
    row: int = -1
    time: int = -1
    acks: int | None = None
    has_failed: bool = False


class Tombstones(Grouped[Report]):
    keys = ("topic", "partition")
    kinds = frozenset(
        {
            *_SENDS,
            *_OPENS,
            *(Kind.LOG_CLEANED, Kind.STORED_LOG, Kind.STORED_BATCH),
            *(Kind.BROKER_PROPERTY, Kind.ZNODE, Kind.LEADER_ELECTED),
        }
    )
    columns = (
        *("topic_id", "node", "f", "op", "key", "tombstone", "acks", "error", "leader_epoch"),
        *("offset", "last_offset", "log_start_offset", "log_end_offset"),
        *("wall_ms", "delete_horizon_ms", *ELECTION_COLUMNS),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (TOMBSTONES_KEPT,)

    def check(self, key: Key, segment: Segment) -> Report:
        topic, partition = key
        configured = segment.where(segment.is_kind(Kind.BROKER_PROPERTY, Kind.ZNODE))
        report = Report(configured=[row for row in configured.events(*self.columns) if _sets(row)])
        if topic is None or partition is None:
            return report
        report.logs = int(np.count_nonzero(segment.is_kind(Kind.STORED_LOG)))
        tp = tp_name(topic, partition)
        compactions = _compactions(segment)
        _horizons(tp, segment, compactions, report)
        is_one_topic = len(set(segment.values("topic_id")) - {None}) <= 1
        if is_one_topic and not elections_in(segment).unclean():
            _tombstones(tp, segment, compactions, report)
        return report

    def finish(self, summaries: list[tuple[Key, Report]]) -> Results:
        rows = [row for _, report in summaries for row in report.configured]
        stated = {e.setting: e.count for _, e in rows if e.kind == Kind.BROKER_PROPERTY}
        default_ms = stated.get(DELETE_RETENTION)
        settings = settings_of(rows)
        logs = judged = 0
        findings: list[Finding] = []
        is_changed = any((event.path or "").startswith(_BROKERS) for _, event in rows)
        for (topic, _), report in summaries:
            retention_ms = _retention_ms(settings.get(topic or "", {}), default_ms)
            logs += report.logs
            if retention_ms is None or is_changed:
                continue
            judged += report.kept + len(report.missing) + len(report.horizons)
            findings += _early(report, retention_ms)
            findings += _wrong(report, retention_ms)
        return conclude(
            TOMBSTONES_KEPT,
            checked=logs + judged,
            findings=findings,
            numbers={"judged": float(judged)},
        )


def _sets(row: Row) -> bool:
    """Whether an event is about settings that count here."""
    event = row[1]
    if event.kind == Kind.BROKER_PROPERTY:
        return event.setting == DELETE_RETENTION
    path = event.path or ""
    return path.startswith("/config/topics/") or (
        path.startswith(_BROKERS) and DELETE_RETENTION in (event.data or "")
    )


def _retention_ms(own: Mapping[str, Any] | None, default_ms: int | None) -> int | None:
    """Return ``delete.retention.ms`` of a topic with these settings of its own; None if it is not known."""
    if own is None or default_ms is None:
        return None
    return int(own.get(_OWN, default_ms))


def _compactions(segment: Segment) -> list[Compaction]:
    cleaned = segment.where(segment.is_kind(Kind.LOG_CLEANED))
    return [
        Compaction(event.offset or 0, event.last_offset or 0, event.wall_ms, event.time, row)
        for row, event in cleaned.events("offset", "last_offset", "wall_ms")
        if event.wall_ms is not None
    ]


def _horizons(tp: str, segment: Segment, compactions: list[Compaction], report: Report) -> None:
    """Add the delete horizons that files have."""
    is_set = segment.is_kind(Kind.STORED_BATCH) & (segment.numbers("delete_horizon_ms") >= 0)
    stored = segment.where(is_set)
    for row, event in stored.events("node", "offset", "last_offset", "delete_horizon_ms"):
        first, last = event.offset or 0, event.last_offset or 0
        begun = {c.wall_ms for c in compactions if c.offset <= last and first <= c.last_offset}
        horizon_ms = event.delete_horizon_ms or 0
        report.horizons.append(
            Horizon(tp, event.node, first, horizon_ms, tuple(sorted(begun)), row)
        )


def _tombstones(tp: str, segment: Segment, compactions: list[Compaction], report: Report) -> None:
    """Add the tombstones that files should hold, unless their delete horizon had passed."""
    tombstones = list(_last_tombstones(segment))
    if not tombstones:
        return
    opened = segment.where(segment.is_kind(*_OPENS))
    cuts = [(e.time, e.log_end_offset or 0) for _, e in opened.events("log_end_offset")]
    for node, (log, batches) in _files_of(segment).items():
        start, end = log[1].log_start_offset or 0, log[1].log_end_offset or 0
        for sent in tombstones:
            offset = sent.offset or 0
            if not start <= offset < end:
                continue
            if any(time > sent.invoke_time and left <= offset for time, left in cuts):
                continue
            if _has(batches, offset):
                report.kept += 1
                continue
            between = _longest(compactions, offset, sent.invoke_time)
            passed = [c.row for c in compactions if c.passes(offset) and c.time > sent.invoke_time]
            rows = (sent.row, *sorted({*passed[:1], *passed[-1:]}), log[0])
            report.missing.append(Missing(tp, node, offset, between, rows))


def _last_tombstones(segment: Segment) -> Iterator[_Send]:
    """Yield the acknowledged tombstones that no other send of their key may supersede."""
    keyed = segment.where(segment.is_kind(*_SENDS) & (segment.numbers("key") >= 0))
    sends: dict[tuple[str, int | None], _Send] = {}
    for row, event in keyed.events("f", "op", "key", "tombstone", "acks", "offset"):
        if event.f == "send":
            _take_in(sends, row, event)
    by_key: dict[int, list[_Send]] = defaultdict(list)
    for send in sends.values():
        if not send.has_failed:
            by_key[send.key].append(send)
    for same in by_key.values():
        if any(send.offset is None for send in same):
            continue
        last = max(same, key=lambda send: send.offset or 0)
        if last.is_tombstone and last.acks == _ALL_REPLICAS:
            yield last


def _take_in(sends: dict[tuple[str, int | None], _Send], row: int, event: Event) -> None:
    if event.kind == Kind.INVOKE:
        about = event.key or 0, bool(event.tombstone), event.time
        sends[event.process, event.op] = _Send(*about, acks=event.acks)
        return
    send = sends.get((event.process, event.op))
    if send is None:
        return
    send.has_failed = event.kind == Kind.FAIL
    if event.kind == Kind.OK and event.offset is not None and event.offset >= 0:
        send.offset, send.row, send.time = event.offset, row, event.time


def _files_of(segment: Segment) -> dict[int | None, tuple[Row, list[tuple[int, int]]]]:
    """Return the logs in files that are not damaged, by broker, and the offsets of their batches in order."""
    logs = segment.where(segment.is_kind(Kind.STORED_LOG))
    files: dict[int | None, tuple[Row, list[tuple[int, int]]]] = {
        event.node: ((row, event), [])
        for row, event in logs.events("node", "log_start_offset", "log_end_offset", "error")
        if succeeded(event)
    }
    stored = segment.where(segment.is_kind(Kind.STORED_BATCH))
    for _, event in stored.events("node", "offset", "last_offset"):
        if event.node in files:
            files[event.node][1].append((event.offset or 0, event.last_offset or 0))
    for _, batches in files.values():
        batches.sort()
    return files


def _has(batches: list[tuple[int, int]], offset: int) -> bool:
    index = bisect_right(batches, offset, key=lambda batch: batch[0]) - 1
    return index >= 0 and offset <= batches[index][1]


def _longest(compactions: list[Compaction], offset: int, since: int) -> int | None:
    """Return the longest time, in ms, from a compaction that passed an offset to a later one."""
    earliest: int | None = None
    longest: int | None = None
    for compaction in compactions:
        if compaction.time <= since or not compaction.passes(offset):
            continue
        if earliest is not None:
            between = compaction.wall_ms - earliest
            longest = between if longest is None else max(longest, between)
        earliest = compaction.wall_ms if earliest is None else min(earliest, compaction.wall_ms)
    return longest


def _early(report: Report, retention_ms: int) -> Iterator[Finding]:
    """Yield the tombstones that were removed before their delete horizon."""
    for missing in report.missing:
        if missing.between_ms is not None and missing.between_ms >= retention_ms:
            continue
        passed = (
            "fewer than two compactions had passed it"
            if missing.between_ms is None
            else f"the compactions that passed it began within {missing.between_ms:,} ms"
        )
        sentence = (
            f"The files of broker {missing.node} lack the tombstone at offset {missing.offset} of {missing.tp}, the "
            f"last record of its key: {passed}, and delete.retention.ms is {retention_ms:,}."
        )
        yield finding(TOMBSTONES_KEPT.name, missing.tp, sentence, *missing.rows)


def _wrong(report: Report, retention_ms: int) -> Iterator[Finding]:
    """Yield the delete horizons that no compaction can have set."""
    for horizon in report.horizons:
        if horizon.horizon_ms - retention_ms in horizon.begun_ms:
            continue
        sentence = (
            f"In the files of broker {horizon.node} the batch at offset {horizon.offset} of {horizon.tp} has the "
            f"delete horizon {horizon.horizon_ms:,}, but no compaction that passed it began {retention_ms:,} ms "
            "(delete.retention.ms) earlier."
        )
        yield finding(TOMBSTONES_KEPT.name, horizon.tp, sentence, horizon.row)


TOMBSTONES_KEPT: Final = Property(
    name="tombstones-kept",
    promise="Compaction keeps a tombstone for delete.retention.ms after it has first passed it.",
    unit="stored logs, and the tombstones and delete horizons in them",
    unknown="No log was read.",
    source="KIP-534; MemoryRecords.filterTo.",
    check=Tombstones,
    decided_from=frozenset(
        {
            *(EventSource.METADATA_LOG, EventSource.TRACES, EventSource.CLIENTS),
            *(EventSource.HARNESS, EventSource.STORED_LOGS),
        }
    ),
    recorded_since=13,
    reason=explain.tombstones_kept,
    breaks=breaks.TOMBSTONES_KEPT,
)
