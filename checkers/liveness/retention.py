"""Logs lose their first segments as they are configured to.

**retention-runs**: of a replica on a broker that lives until the run ends, its files hold, once the broker is stopped,
(a) no first segment without which the log would still have ``retention.bytes``, if its topic's policy is ``delete``;
(b) no first segment that ends at or below where the replica's log starts,
for which this has been so for longer than ``log.retention.check.interval.ms``, and that ends at or below the
replica's high watermark.
Smallest breaks: the interval is 5 ms; (a) ``retention.bytes`` is 10, the log has segments of 10 bytes from offset 0, 1
and 2 on, was appended to last at 2 ms, and the run ends at 9 ms; (b) the log starts at 1 since 2 ms, and its files
still have the segment from 0 to 1.

Why the bound holds: a broker looks at all its logs in each interval, and deletes every segment of which this is true.

The files are exact: the size of each segment, and which there are. Since when it has been so follows from the traces:
the latest of the time at which the log had reached its second segment behind those that count, of the time at which the
high watermark had reached the end of the first segment, and of when the process opened, moved or truncated the log
last. It counts from the end of the last fault at the earliest, up to the last measurement of the machine before the end
of the run. The last segment does not count: it is still appended to.

What a correct cluster does and is not convicted for: logs that are compacted; topics whose settings were written more
than once; a log that the broker had not opened for the controller since it started; damaged logs. What the machine may
explain is ``unknown``.

Limits: the age of records (``retention.ms``) is not judged, because no property relies on wall clocks. (a) is judged
where the high watermark is traced, which is where the replica leads, or has led since. That not too much is deleted is
judged by ``log-start-bounded`` and ``final-logs``. With the default interval of 5 minutes no run is long enough.
Source: UnifiedLog.deleteOldSegments, LogManager (kafka-log-retention).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from nemesis.checkers.breaks import retention as breaks
from nemesis.checkers.explain import retention as explain
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.liveness import log_ends, unexplained
from nemesis.checkers.liveness.log_ends import MS, NO_ENDS, Ends
from nemesis.checkers.replication.replica_rows import TopicKey, partitions
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import RETENTION_BYTES, RETENTION_INTERVAL

_CONFIGS: Final = "/config/topics/"
_END: Final = "end"
_OPENS: Final = frozenset({Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE})
"""After these a log may be another one than before."""
_OF_LOGS: Final = _OPENS | {Kind.LOG_START_OFFSET, Kind.STORED_LOG, Kind.STORED_SEGMENT}
_OF_ENDS: Final = _OPENS | {Kind.APPEND, Kind.LOG_START_OFFSET}
_OF_RUN: Final = frozenset(
    {*unexplained.KINDS, Kind.ZNODE, Kind.BROKER_STARTED, Kind.BROKER_PROPERTY}
)


@dataclass(slots=True)
class Traced:
    """What is traced, and stored, of one partition."""

    rows: list[Row] = field(default_factory=list)
    ends: Ends = NO_ENDS
    marks: Ends = NO_ENDS
    """High watermarks, thinned as the ends of logs are."""


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    partitions: dict[TopicKey, Traced] = field(default_factory=dict)


class Run(NamedTuple):
    """What is the same for all replicas."""

    interval_ms: int
    retention_bytes: int
    since: int
    """When the last fault had ended, in ns."""
    until: int
    """When the machine was measured last before the run ended, in ns."""
    started: Mapping[int, int]
    """When the last process of each broker started, in ns."""
    settings: Mapping[str, Mapping[str, Any] | None]
    """The settings of topics; None if they were written more than once, or cannot be read."""


class Replica(NamedTuple):
    """The log of a replica, as its broker left it."""

    node: int
    stored: Row
    bases: Sequence[int]
    """The first offsets of its segments."""
    sizes: Sequence[int]
    """Their sizes in bytes."""
    first: int
    """The row of the first segment."""
    opened: Row
    """The last event after which the log may have been another one."""


class Kept(NamedTuple):
    """A segment that should have been deleted."""

    since: int
    """In ns."""
    why: str
    row: int
    """The event that shows it, or the one before."""


class Retention(Fold[Summary]):
    kinds = _OF_RUN | _OF_LOGS | _OF_ENDS | {Kind.HIGH_WATERMARK}
    columns = (
        *("topic", "topic_id", "partition", "incarnation", "offset", "count", "alive", "error"),
        *("log_start_offset", "high_watermark", "zk_op", "path", "data"),
        *log_ends.COLUMNS,
        *unexplained.COLUMNS,
        "targets",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (RETENTION_RUNS,)

    def reduce(self, segment: Segment) -> Summary:
        rows = segment.only(_OF_RUN).events(*self.columns)
        return Summary(
            [item for item in rows if _matters(item[1])],
            {
                key: Traced(
                    list(part.only(_OF_LOGS).events(*self.columns)),
                    log_ends.ends(part.only(_OF_ENDS)),
                    _marks(part.only({Kind.HIGH_WATERMARK})),
                )
                for key, part in partitions(segment)
            },
        )

    def combine(self, a: Summary, b: Summary) -> Summary:
        for key, later in b.partitions.items():
            known = a.partitions.setdefault(key, Traced())
            a.partitions[key] = Traced(
                known.rows + later.rows,
                log_ends.join(known.ends, later.ends),
                log_ends.join(known.marks, later.marks),
            )
        return Summary(a.rows + b.rows, a.partitions)

    def finish(self, summary: Summary) -> Results:
        run = _run(summary.rows)
        if run is None:
            return conclude(RETENTION_RUNS, checked=0)
        checked = 0
        findings: list[Finding] = []
        for key, traced in sorted(summary.partitions.items(), key=lambda item: str(item[0])):
            for replica in _replicas(traced.rows, run):
                checked += 1
                findings += _judge(key, replica, traced, run, summary.rows)
        return conclude(RETENTION_RUNS, checked=checked, findings=findings)


def _matters(event: Event) -> bool:
    return event.kind != Kind.ZNODE or (event.path or "").startswith(_CONFIGS)


def _marks(part: Segment) -> Ends:
    if not len(part):
        return NO_ENDS
    is_leader = np.ones(len(part), dtype=np.bool_)
    marks = part.numbers("high_watermark")
    return log_ends.thinned(
        Ends(part.numbers("time"), marks, part.rows, part.numbers("node"), is_leader)
    )


def _run(rows: Sequence[Row]) -> Run | None:
    """Return None if the run does not state its settings, or was interrupted."""
    stated = {event.setting: event.count for _, event in rows if event.kind == Kind.BROKER_PROPERTY}
    interval, retention = stated.get(RETENTION_INTERVAL), stated.get(RETENTION_BYTES)
    windows = unexplained.without_faults(rows, until=_END)
    ends = [event.time for _, event in rows if event.phase == _END]
    if interval is None or retention is None or not ends:
        return None
    until = unexplained.measured_until(rows, ends[-1])
    since = windows[-1][0] if windows and windows[-1][1] >= ends[-1] else until
    started = {
        event.node or 0: event.time for _, event in rows if event.kind == Kind.BROKER_STARTED
    }
    return Run(interval, retention, since, until, started, _settings(rows))


def _settings(rows: Sequence[Row]) -> dict[str, Mapping[str, Any] | None]:
    settings: dict[str, Mapping[str, Any] | None] = {}
    for _, event in rows:
        if event.kind == Kind.ZNODE and event.zk_op in ("create", "setData"):
            topic = (event.path or "").removeprefix(_CONFIGS)
            settings[topic] = None if topic in settings else _overrides(event.data)
    return settings


def _overrides(data: str | None) -> Mapping[str, Any] | None:
    try:
        decoded: Any = msgspec.json.decode(data or "null")
    except msgspec.DecodeError:
        return None
    overrides = decoded.get("config") if isinstance(decoded, dict) else None
    return overrides if isinstance(overrides, dict) else None


def _replicas(rows: Sequence[Row], run: Run) -> Iterator[Replica]:
    """Yield the logs of living brokers that are not damaged, and were opened by the last process."""
    opened: dict[int, Row] = {}
    stored: dict[int, Row] = {}
    segments: dict[int, list[Row]] = defaultdict(list)
    for item in rows:
        event, node = item[1], item[1].node or 0
        if event.kind in _OPENS:
            opened[node] = item
        elif event.kind == Kind.STORED_LOG:
            stored[node] = item
        elif event.kind == Kind.STORED_SEGMENT:
            segments[node].append(item)
    for node, (row, event) in sorted(stored.items()):
        known = opened.get(node)
        is_whole = event.alive and succeeded(event) and segments[node]
        if not is_whole or known is None or known[1].time < run.started.get(node, 0):
            continue
        parts = sorted(segments[node], key=lambda item: item[1].offset or 0)
        bases = [part.offset or 0 for _, part in parts]
        sizes = [part.count or 0 for _, part in parts]
        yield Replica(node, (row, event), bases, sizes, parts[0][0], known)


def _judge(
    key: TopicKey,
    replica: Replica,
    traced: Traced,
    run: Run,
    rows: Sequence[Row],
) -> Iterator[Finding]:
    settings = run.settings.get(key[0], {})
    is_deleted_only = settings is not None and "compact" not in settings.get("cleanup.policy", "")
    if settings is None or not is_deleted_only or len(replica.bases) < 2:
        return
    for kept in (_too_large(replica, traced, run, settings), _below_start(replica, traced)):
        if kept is None:
            continue
        since = max(kept.since, run.since)
        over = run.until - since - run.interval_ms * MS
        if over <= 0:
            continue
        excuse = unexplained.excuse(rows, since, run.until, over // MS)
        if excuse is not None and over // MS <= unexplained.MAX_LAG_MS:
            continue
        sentence = (
            f"Broker {replica.node} kept the segment of {tp_name(key[0], key[2])} from offset {replica.bases[0]} to "
            f"{replica.bases[1] - 1} for {(run.until - since) // MS:,} ms, though {kept.why}. It looks every "
            f"{run.interval_ms:,} ms."
        )
        yield finding(
            RETENTION_RUNS.name,
            tp_name(key[0], key[2]),
            sentence if excuse is None else f"{sentence} But {excuse}.",
            kept.row,
            replica.stored[0],
            replica.first,
            verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
        )


def _too_large(
    replica: Replica, traced: Traced, run: Run, settings: Mapping[str, Any]
) -> Kept | None:
    """Return since when the log has been large enough without its first segment; None if that is not known."""
    retention = int(settings.get("retention.bytes", run.retention_bytes))
    behind = [*accumulate(replica.sizes[1:-1])]
    enough = next((index for index, size in enumerate(behind) if size >= retention), None)
    if retention < 0 or enough is None:
        return None
    row, opened = replica.opened
    reached = _reached(traced.ends, replica, replica.bases[enough + 2], opened.log_end_offset)
    committed = _reached(traced.marks, replica, replica.bases[1], opened.high_watermark)
    if reached is None or committed is None:
        return None
    why = f"the log had {behind[enough]:,} bytes behind it, and retention.bytes is {retention:,}"
    return Kept(max(reached, committed), why, row)


def _below_start(replica: Replica, traced: Traced) -> Kept | None:
    """Return since when the first segment has been below the start of the log; None if it is not known to be."""
    opened_row, opened = replica.opened
    moved = [
        item
        for item in traced.rows
        if item[1].kind == Kind.LOG_START_OFFSET
        and item[1].node == replica.node
        and item[1].time >= opened.time
    ]
    end = replica.bases[1]
    for row, event in [(opened_row, opened), *moved]:
        if min(event.log_start_offset or 0, event.high_watermark or 0) >= end:
            return Kept(event.time, f"the log had begun at {event.log_start_offset}", row)
    return None


def _reached(ends: Ends, replica: Replica, offset: int, opened_at: int | None) -> int | None:
    """Return since when the log, or its high watermark, has certainly reached an offset; None if it has not."""
    opened = replica.opened[1]
    if (opened_at or 0) >= offset:
        return opened.time
    # A thinned end of a follower counts from the beginning of its millisecond.
    is_own = (ends.node == replica.node) & (ends.time > opened.time) & (ends.end >= offset)
    times: Numbers = ends.time[is_own]
    return int(times.min()) + MS if len(times) else None


RETENTION_RUNS: Final = Property(
    name="retention-runs",
    promise="A broker deletes the segments that retention.bytes or the start of the log allows to delete.",
    unit="logs of living brokers, those that are compacted among them",
    unknown="The harness did not record the settings, no log of a living broker was read, or the machine was slow.",
    source="UnifiedLog.deleteOldSegments, LogManager (kafka-log-retention).",
    check=Retention,
    decided_from=frozenset(
        {
            EventSource.METADATA_LOG,
            EventSource.TRACES,
            EventSource.FAULTS,
            EventSource.HARNESS,
            EventSource.STORED_LOGS,
        }
    ),
    recorded_since=5,
    reason=explain.retention_runs,
    breaks=breaks.RETENTION_RUNS,
)
