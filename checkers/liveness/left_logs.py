"""The logs that brokers leave, and since when each was what it is: what properties of background work share.

The files are exact: the size of each segment, and which there are. Since when it has been so follows from the traces:
the ends of logs, the high watermarks of leaders, and when the process opened, moved or truncated the log last. What the
machine may explain is decided by ``unexplained``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

import numpy as np

from nemesis.checkers import settings_written
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.liveness import log_ends, unexplained
from nemesis.checkers.liveness.log_ends import MS, NO_ENDS, Ends
from nemesis.checkers.replication.replica_rows import TopicKey, partitions
from nemesis.checkers.settings_written import Overrides, broker_settings, settings_of
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

DECIDED_FROM: Final = frozenset(
    {
        *(EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS),
        *(EventSource.HARNESS, EventSource.STORED_LOGS),
    }
)
"""The sources of every property of this kind."""
_END: Final = "end"
OPENS: Final = frozenset({Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE})
"""After these a log may be another one than before."""
OF_LOGS: Final = OPENS | {
    *(Kind.LOG_START_OFFSET, Kind.STORED_LOG, Kind.STORED_SEGMENT),
    *(Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED),
}
_ROLES: Final = frozenset({Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED})
_OF_ENDS: Final = OPENS | {Kind.APPEND, Kind.LOG_START_OFFSET}
OF_RUN: Final = frozenset(
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

    stated: Mapping[str | None, int]
    """The properties that brokers were configured with, by name."""
    changed: AbstractSet[str]
    """The properties that were changed while brokers ran."""
    since: int
    """When the last fault had ended, in ns."""
    until: int
    """When the machine was measured last before the run ended, in ns."""
    started: Mapping[int, int]
    """When the last process of each broker started, in ns."""
    settings: Mapping[str, Overrides | None]
    """The settings of topics; None if they were not the same in the whole run, or cannot be read."""
    rows: Sequence[Row]
    """The events of the run that concern no partition."""

    def constant(self, name: str) -> int | None:
        """Return a property that brokers had in the whole run; None if it is not known, or was changed."""
        return None if name in self.changed else self.stated.get(name)


class Replica(NamedTuple):
    """The log of a replica, as its broker left it."""

    node: int
    stored: Row
    bases: Sequence[int]
    """The first offsets of its segments."""
    sizes: Sequence[int]
    """Their sizes in bytes."""
    newest: Sequence[int]
    """Their newest records, in ms since 1970; −1: not known."""
    first: int
    """The row of the first segment."""
    opened: Row
    """The last event after which the log may have been another one."""
    settled: int
    """When the broker last ceased to lead the partition, in ns; −1 if it never did."""


class LeftLogs(Fold[Summary]):
    """A check of the logs that living brokers leave; a property implements ``judge``."""

    depends_on: ClassVar[tuple[str, ...]]
    """The properties of brokers without which nothing can be judged."""
    of_logs: ClassVar[frozenset[Kind]] = OF_LOGS
    """The kinds of events of a partition that ``judge`` is given as rows."""

    kinds = OF_RUN | OF_LOGS | _OF_ENDS | {Kind.HIGH_WATERMARK}
    columns: ClassVar[tuple[str, ...]] = (
        *("topic", "topic_id", "partition", "incarnation", "offset", "count", "alive", "error"),
        *("log_start_offset", "high_watermark", *settings_written.COLUMNS),
        *("cleaner_offset", "recovery_point", "max_timestamp", "wall_ms"),
        *log_ends.COLUMNS,
        *unexplained.COLUMNS,
        "targets",
    )

    def reduce(self, segment: Segment) -> Summary:
        rows = segment.only(OF_RUN).events(*self.columns)
        return Summary(
            [item for item in rows if _matters(item[1])],
            {
                key: Traced(
                    list(part.only(self.of_logs).events(*self.columns)),
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
        run = run_of(summary.rows)
        if run is None or any(name not in run.stated for name in self.depends_on):
            return self.conclude(0, [])
        checked = 0
        findings: list[Finding] = []
        for key, traced in sorted(summary.partitions.items(), key=lambda item: str(item[0])):
            for replica in _replicas(traced.rows, run):
                checked += 1
                findings += self.judge(key, replica, traced, run)
        return self.conclude(checked, findings)

    @abstractmethod
    def judge(self, key: TopicKey, replica: Replica, traced: Traced, run: Run) -> Iterator[Finding]:
        """Yield what is wrong with a log of a living broker that is not damaged."""

    @abstractmethod
    def conclude(self, checked: int, findings: list[Finding]) -> Results:
        """Return the results; ``checked`` counts logs, and is 0 if the run states no settings."""


def _matters(event: Event) -> bool:
    return event.kind != Kind.ZNODE or settings_written.is_about_settings(event)


def _marks(part: Segment) -> Ends:
    if not len(part):
        return NO_ENDS
    is_leader = np.ones(len(part), dtype=np.bool_)
    marks = part.numbers("high_watermark")
    return log_ends.thinned(
        Ends(part.numbers("time"), marks, part.rows, part.numbers("node"), is_leader)
    )


def run_of(rows: Sequence[Row]) -> Run | None:
    """Return None if the run does not state its settings, or was interrupted."""
    stated = {event.setting: event.count for _, event in rows if event.kind == Kind.BROKER_PROPERTY}
    windows = unexplained.without_faults(rows, until=_END)
    ends = [event.time for _, event in rows if event.phase == _END]
    if not stated or not ends:
        return None
    until = unexplained.measured_until(rows, ends[-1])
    since = windows[-1][0] if windows and windows[-1][1] >= ends[-1] else until
    started = {
        event.node or 0: event.time for _, event in rows if event.kind == Kind.BROKER_STARTED
    }
    return Run(
        {k: v for k, v in stated.items() if v is not None},
        broker_settings(rows).keys(),
        since,
        until,
        started,
        settings_of(rows),
        rows,
    )


def _replicas(rows: Sequence[Row], run: Run) -> Iterator[Replica]:
    """Yield the logs of living brokers that are not damaged, and were opened by the last process."""
    opened: dict[int, Row] = {}
    stored: dict[int, Row] = {}
    settled: dict[int, int] = {}
    segments: dict[int, list[Row]] = defaultdict(list)
    for item in rows:
        event, node = item[1], item[1].node or 0
        if event.kind in OPENS:
            opened[node] = item
        elif event.kind == Kind.STORED_LOG:
            stored[node] = item
        elif event.kind == Kind.STORED_SEGMENT:
            segments[node].append(item)
        elif event.kind in _ROLES:
            settled[node] = event.time
    for node, (row, event) in sorted(stored.items()):
        known = opened.get(node)
        is_whole = event.alive and succeeded(event) and segments[node]
        if not is_whole or known is None or known[1].time < run.started.get(node, 0):
            continue
        parts = sorted(segments[node], key=lambda item: item[1].offset or 0)
        bases = [part.offset or 0 for _, part in parts]
        sizes = [part.count or 0 for _, part in parts]
        newest = [-1 if part.max_timestamp is None else part.max_timestamp for _, part in parts]
        yield Replica(
            node, (row, event), bases, sizes, newest, parts[0][0], known, settled.get(node, -1)
        )


def reached(ends: Ends, replica: Replica, offset: int, opened_at: int | None) -> int | None:
    """Return since when the log, or its high watermark, has certainly reached an offset; None if it has not."""
    opened = replica.opened[1]
    if (opened_at or 0) >= offset:
        return opened.time
    # A thinned end of a follower counts from the beginning of its millisecond.
    is_own = (ends.node == replica.node) & (ends.time > opened.time) & (ends.end >= offset)
    times: Numbers = ends.time[is_own]
    return int(times.min()) + MS if len(times) else None


def reached_by(ends: Ends, replica: Replica, time: int, opened_at: int | None) -> int:
    """Return how far the log, or its high watermark, had certainly come at a time (ns)."""
    opened = replica.opened[1]
    is_own = (ends.node == replica.node) & (ends.time > opened.time) & (ends.time < time - MS)
    return max(int(ends.end[is_own].max(initial=0)), opened_at or 0)


def late(
    name: str,
    key: TopicKey,
    run: Run,
    since: int,
    bound_ms: int,
    sentence: str,
    *rows: int,
) -> Iterator[Finding]:
    """Yield the finding that something had not been done at the end, if it was due in all that time without faults.

    ``since`` (ns): when it was to be done. What the machine may explain is unknown, unless it is very late.
    """
    since = max(since, run.since)
    over = run.until - since - bound_ms * MS
    if over <= 0:
        return
    excuse = unexplained.excuse(run.rows, since, run.until, over // MS)
    if excuse is not None and over // MS <= unexplained.MAX_LAG_MS:
        return
    yield finding(
        name,
        tp_name(key[0], key[2]),
        sentence if excuse is None else f"{sentence} But {excuse}.",
        *rows,
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )
