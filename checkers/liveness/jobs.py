"""Work that brokers repeat begins when it is configured to.

**jobs-on-time**: in one process life of a broker, the turns of a recurring job begin
(a) not before its interval has passed since the turn before, or, of those with both bounds, since the process started;
(b) as soon as its interval has passed since the turn before, or since the broker registered first, if no fault is in
force meanwhile. The last turn counts up to the last turn of any job of that process.

| job | interval | bound |
|---|---|---|
| kafka-log-retention | log.retention.check.interval.ms | both |
| kafka-recovery-point-checkpoint | log.flush.offset.checkpoint.interval.ms | both |
| kafka-log-start-offset-checkpoint | log.flush.start.offset.checkpoint.interval.ms | both |
| highwatermark-checkpoint | replica.high.watermark.checkpoint.interval.ms | both |
| isr-expiration | half of replica.lag.time.max.ms | both |
| kafka-log-cleaner-thread-N | log.cleaner.backoff.ms, between looks that find nothing to compact | (a) |
| auto-leader-rebalance-task | leader.imbalance.check.interval.seconds, within a term of a controller | (a) |

Smallest breaks: the interval is 500 ms; (a) a broker starts at 0 ms and its job at 499 ms; (b) the job starts at 500 ms
and then at 1,101 ms.

Why the bounds hold: a scheduler counts the interval from the end of the turn before. So a turn never comes early, by
the monotonic clock that also dates the events, and comes late only by what the turn before takes. A fault that has
ended leaves a timer that is due or waits no longer than the interval.

What a correct cluster does and is not convicted for: a turn that takes 100 ms itself; a process that ends, for any
reason; a controller that resigns and is elected again looks at its leaders sooner; a cleaner that compacts. What the
machine may explain is ``unknown``.

Limits: of a process that starts no job any more nothing is known (``convergence`` needs its ISR to be full). A late
cleaner is judged by ``compaction-runs``, late elections of preferred leaders by ``leaders-balanced``. Intervals longer
than a run judge only (a).
Source: KafkaScheduler, LogManager, ReplicaManager, LogCleaner, KafkaController (scheduleAutoLeaderRebalanceTask).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from nemesis.checkers.breaks import jobs as breaks
from nemesis.checkers.explain import jobs as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness import unexplained
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import (
    BALANCE_INTERVAL,
    CLEANER_BACKOFF,
    LAG_TIME,
    LOG_START_INTERVAL,
    MARK_INTERVAL,
    RECOVERY_POINT_INTERVAL,
    RETENTION_INTERVAL,
)

BALANCE: Final = "auto-leader-rebalance-task"
_MS: Final = 1_000_000
_ROUNDING_NS: Final = _MS
"""An event loop may wake up a tick of its clock early."""
_SETTINGS: Final = {
    "kafka-log-retention": RETENTION_INTERVAL,
    "kafka-recovery-point-checkpoint": RECOVERY_POINT_INTERVAL,
    "kafka-log-start-offset-checkpoint": LOG_START_INTERVAL,
    "highwatermark-checkpoint": MARK_INTERVAL,
    "isr-expiration": LAG_TIME,
    "kafka-log-cleaner-thread": CLEANER_BACKOFF,
    BALANCE: BALANCE_INTERVAL,
}
_NS: Final = {LAG_TIME: _MS // 2, BALANCE_INTERVAL: 1_000 * _MS}
"""What one unit of a setting means for the interval of its job, unless it is a millisecond."""
_FIRST_LOOK_NS: Final = 5_000 * _MS
"""How long after its election a controller looks at its leaders first; a look for an earlier term may precede it."""
_ONLY_NOT_EARLY: Final = frozenset({CLEANER_BACKOFF, BALANCE_INTERVAL})
_STATED: Final = frozenset({Kind.BROKER_PROPERTY, Kind.TIMEOUT_SETTING})

Windows = Sequence[tuple[int, int]]


class Interval(NamedTuple):
    setting: str
    ns: int


class Process(NamedTuple):
    """What one process life of a broker traced, in order of time."""

    node: int
    begins: Sequence[Row]
    """Its start, then its first registration, as far as they were traced."""
    elected: Sequence[int]
    """When it was elected controller, in ns."""
    turns: Mapping[str, Sequence[Row]]
    """By job."""
    last: Row
    """The last turn of all."""


class Jobs(EventListCheck):
    kinds = frozenset(
        {
            Kind.JOB_STARTED,
            *(Kind.BROKER_STARTED, Kind.BROKER_REGISTERED, Kind.CONTROLLER_ELECTED),
            Kind.BROKER_PROPERTY,
            *unexplained.KINDS,
        }
    )
    columns = ("node", "incarnation", "step", "count", *unexplained.COLUMNS, "targets")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (JOBS_ON_TIME,)

    def judge(self, rows: list[Row]) -> Results:
        stated = _stated(rows)
        windows = unexplained.without_faults(rows, until="end")
        checked = 0
        findings: list[Finding] = []
        for process in _processes(rows):
            for job, turns in process.turns.items():
                interval = _interval(job, stated)
                if interval is None:
                    continue
                checked += len(turns)
                findings += _early(process, job, turns, interval)
                if interval.setting not in _ONLY_NOT_EARLY:
                    findings += _late(rows, windows, process, job, turns, interval)
            findings += _never(rows, windows, process, stated)
        return conclude(JOBS_ON_TIME, checked=checked, findings=findings)


def _stated(rows: Sequence[Row]) -> dict[str, int]:
    """Return the settings that the harness recorded, each in the unit of its name."""
    return {
        event.setting: number
        for _, event in rows
        if event.kind in _STATED
        and event.setting is not None
        and (number := event.count if event.duration_ms is None else event.duration_ms) is not None
    }


def _interval(job: str, stated: Mapping[str, int]) -> Interval | None:
    """Return how long the job waits between its turns; None if it is not judged, or its setting not known."""
    name, _, number = job.rpartition("-")
    setting = _SETTINGS.get(name if number.isdigit() else job)
    if setting is None or setting not in stated:
        return None
    return Interval(setting, stated[setting] * _NS.get(setting, _MS))


def _processes(rows: Sequence[Row]) -> Iterator[Process]:
    """Yield the process lives in which a job has started."""
    incarnations: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
        if event.node is not None:
            incarnations[event.process, event.incarnation].append((row, event))
    for incarnation in incarnations.values():
        turns: dict[str, list[Row]] = defaultdict(list)
        for item in incarnation:
            if item[1].kind == Kind.JOB_STARTED:
                turns[item[1].step or ""].append(item)
        if turns:
            firsts = [
                next((item for item in incarnation if item[1].kind == kind), None)
                for kind in (Kind.BROKER_STARTED, Kind.BROKER_REGISTERED)
            ]
            begins = [item for item in firsts if item is not None]
            elected = [
                event.time for _, event in incarnation if event.kind == Kind.CONTROLLER_ELECTED
            ]
            last = [item for item in incarnation if item[1].kind == Kind.JOB_STARTED][-1]
            yield Process(incarnation[0][1].node or 0, begins, elected, turns, last)


def _early(
    process: Process, job: str, turns: Sequence[Row], interval: Interval
) -> Iterator[Finding]:
    """Part (a)."""
    started = [item for item in process.begins if item[1].kind == Kind.BROKER_STARTED]
    after_start = [] if interval.setting in _ONLY_NOT_EARLY else started
    for (before, earlier), (row, event) in pairwise([*after_start, *turns]):
        passed = event.time - earlier.time
        is_new_term = any(
            earlier.time - _FIRST_LOOK_NS <= time <= event.time for time in process.elected
        )
        if passed >= interval.ns - _ROUNDING_NS or (job == BALANCE and is_new_term):
            continue
        since = "the process started" if earlier.kind == Kind.BROKER_STARTED else "the turn before"
        yield finding(
            JOBS_ON_TIME.name,
            f"broker-{process.node}",
            f"Broker {process.node} started {job} {passed // _MS:,} ms after {since}; "
            f"its interval is {interval.ns // _MS:,} ms ({interval.setting}).",
            before,
            row,
        )


def _late(
    rows: Sequence[Row],
    windows: Windows,
    process: Process,
    job: str,
    turns: Sequence[Row],
    interval: Interval,
) -> Iterator[Finding]:
    """Part (b), for a job that has had a turn."""
    registered = [item for item in process.begins if item[1].kind == Kind.BROKER_REGISTERED]
    chain = [*(item for item in registered if item[1].time <= turns[0][1].time), *turns]
    for earlier, later in pairwise([*chain, process.last]):
        yield from _waited(rows, windows, process.node, job, interval, earlier, later)


def _never(
    rows: Sequence[Row], windows: Windows, process: Process, stated: Mapping[str, int]
) -> Iterator[Finding]:
    """Part (b), for jobs that had no turn at all though others of the process had."""
    registered = [item for item in process.begins if item[1].kind == Kind.BROKER_REGISTERED]
    for job in _SETTINGS:
        interval = _interval(job, stated)
        is_judged = interval is not None and interval.setting not in _ONLY_NOT_EARLY
        if interval is None or not is_judged or job in process.turns or not registered:
            continue
        yield from _waited(rows, windows, process.node, job, interval, registered[0], process.last)


def _waited(
    rows: Sequence[Row],
    windows: Windows,
    node: int,
    job: str,
    interval: Interval,
    earlier: Row,
    later: Row,
) -> Iterator[Finding]:
    """Yield the finding that no turn began between two events, for too long while no fault was in force."""
    for start, stop in windows:
        since, until = max(start, earlier[1].time), min(stop, later[1].time)
        over = (until - since - interval.ns) // _MS
        if over <= unexplained.MAX_LAG_MS:
            continue
        excuse = unexplained.excuse(rows, since, until, over)
        sentence = (
            f"Broker {node} did not start {job} for {(until - since) // _MS:,} ms without a fault; "
            f"its interval is {interval.ns // _MS:,} ms ({interval.setting})."
        )
        yield finding(
            JOBS_ON_TIME.name,
            f"broker-{node}",
            sentence if excuse is None else f"{sentence} But {excuse}.",
            earlier[0],
            later[0],
            verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
        )


JOBS_ON_TIME: Final = Property(
    name="jobs-on-time",
    promise="Brokers begin retention, checkpoints, checks of ISRs and similar jobs at their intervals.",
    unit="turns of jobs",
    unknown="No broker traced a turn of a job whose interval the harness recorded, or the machine was slow.",
    source="KafkaScheduler, LogManager, ReplicaManager, LogCleaner, KafkaController.",
    check=Jobs,
    decided_from=frozenset({EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}),
    recorded_since=9,
    reason=explain.jobs_on_time,
    breaks=breaks.JOBS_ON_TIME,
)
