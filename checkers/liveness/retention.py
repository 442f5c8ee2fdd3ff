"""Logs lose their first segments as they are configured to.

**retention-runs**: of a replica on a broker that lives until the run ends, its files hold, once the broker is
stopped,
(a) no first segment without which the log would still have ``retention.bytes``, if its topic's policy is ``delete``;
(b) no first segment that ends at or below where the replica's log starts;
(c) no first segment whose newest record is older than ``retention.ms``, if the policy is ``delete``,
for which this has been so for longer than ``log.retention.check.interval.ms``, and that ends at or below the
replica's high watermark.
Smallest breaks: the interval is 5 ms; (a) ``retention.bytes`` is 10, the log has segments of 10 bytes from offset 0,
1 and 2 on, was appended to last at 2 ms, and the run ends at 9 ms; (b) the log starts at 1 since 2 ms, and its files
still have the segment from 0 to 1; (c) ``retention.ms`` is 10, the newest record of the first of two segments is from
2 ms, and the run ends at 18 ms.

Why the bound holds: a broker looks at all its logs in each interval, and deletes every segment of which this is true.

The files are exact: the size of each segment, and which there are. Since when it has been so follows from the traces:
the latest of the time at which the log had reached its second segment behind those that count, of the time at which
the high watermark had reached the end of the first segment, and of when the process opened, moved or truncated the
log last. How old records are follows from the time of day that the harness recorded at the end, which brokers share:
faults that move their clocks have ended. It counts from the end of the last fault at the earliest, up to the last
measurement of the machine before the end of the run. The last segment does not count: it is still appended to.

What a correct cluster does and is not convicted for: logs that are compacted; topics whose settings were not the same
in the whole run, or that have a setting of the brokers which was changed meanwhile; a log that the broker had not
opened for the controller since it started; damaged logs. What the machine may explain is ``unknown``.

Limits: a segment whose records have no time is not judged by age. (a) and (c) are judged where the high watermark is
traced, which is where the replica leads, or has led since. That not too much is deleted is judged by
``segments-deleted-by-rule``, ``log-start-bounded`` and ``final-logs``. With the default interval of 5 minutes no run
is long enough.
Source: UnifiedLog.deleteOldSegments, LogManager (kafka-log-retention).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from nemesis.checkers.breaks import retention as breaks
from nemesis.checkers.explain import retention as explain
from nemesis.checkers.framework.findings import tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness.left_logs import (
    DECIDED_FROM,
    LeftLogs,
    Replica,
    Run,
    Traced,
    late,
    reached,
)
from nemesis.checkers.liveness.log_ends import MS
from nemesis.checkers.replication.replica_rows import TopicKey
from nemesis.checkers.settings_written import Overrides
from nemesis.history.events import Kind
from nemesis.history.vocabulary.harness import (
    CLEANUP_POLICY,
    RETENTION_BYTES,
    RETENTION_INTERVAL,
    RETENTION_MS,
)

_NO_BOUND: Final = -1


class Kept(NamedTuple):
    """A segment that should have been deleted."""

    since: int
    """In ns."""
    why: str
    row: int
    """The event that shows it, or the one before."""


class Retention(LeftLogs):
    depends_on = (RETENTION_INTERVAL, RETENTION_BYTES)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (RETENTION_RUNS,)

    def conclude(self, checked: int, findings: list[Finding]) -> Results:
        return conclude(RETENTION_RUNS, checked=checked, findings=findings)

    def judge(self, key: TopicKey, replica: Replica, traced: Traced, run: Run) -> Iterator[Finding]:
        interval_ms = run.stated[RETENTION_INTERVAL]
        settings = run.settings.get(key[0], {})
        if settings is None or not _is_deleted_only(settings, run) or len(replica.bases) < 2:
            return
        for kept in (
            _too_large(replica, traced, run, settings),
            _below_start(replica, traced),
            _too_old(replica, traced, run, settings),
        ):
            if kept is None:
                continue
            waited_ms = (run.until - max(kept.since, run.since)) // MS
            sentence = (
                f"Broker {replica.node} kept the segment of {tp_name(key[0], key[2])} from offset "
                f"{replica.bases[0]} to {replica.bases[1] - 1} for {waited_ms:,} ms, though {kept.why}. It looks every "
                f"{interval_ms:,} ms."
            )
            rows = (kept.row, replica.stored[0], replica.first)
            yield from late(RETENTION_RUNS.name, key, run, kept.since, interval_ms, sentence, *rows)


def _is_deleted_only(settings: Overrides, run: Run) -> bool:
    policy = settings.get("cleanup.policy")
    if policy is None:
        return CLEANUP_POLICY not in run.changed
    return "compact" not in policy


def _bound(settings: Overrides, own: str, run: Run, name: str) -> int:
    """Return a bound of retention; −1: without bound, or not the same in the whole run."""
    constant = run.constant(name)
    return int(settings.get(own, _NO_BOUND if constant is None else constant))


def _too_large(replica: Replica, traced: Traced, run: Run, settings: Overrides) -> Kept | None:
    """Return since when the log has been large enough without its first segment; None if that is not known."""
    retention = _bound(settings, "retention.bytes", run, RETENTION_BYTES)
    behind = [*accumulate(replica.sizes[1:-1])]
    enough = next((index for index, size in enumerate(behind) if size >= retention), None)
    if retention < 0 or enough is None:
        return None
    row, opened = replica.opened
    grown = reached(traced.ends, replica, replica.bases[enough + 2], opened.log_end_offset)
    committed = reached(traced.marks, replica, replica.bases[1], opened.high_watermark)
    if grown is None or committed is None:
        return None
    why = f"the log had {behind[enough]:,} bytes behind it, and retention.bytes is {retention:,}"
    return Kept(max(grown, committed), why, row)


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


def _too_old(replica: Replica, traced: Traced, run: Run, settings: Overrides) -> Kept | None:
    """Return since when the first segment has been old enough; None if that is not known."""
    retention = _bound(settings, "retention.ms", run, RETENTION_MS)
    end = next((e for _, e in run.rows if e.phase == "end" and e.wall_ms is not None), None)
    newest = replica.newest[0]
    row, opened = replica.opened
    committed = reached(traced.marks, replica, replica.bases[1], opened.high_watermark)
    if retention < 0 or newest < 0 or end is None or end.wall_ms is None or committed is None:
        return None
    due = end.time - (end.wall_ms - newest - retention) * MS
    age = end.wall_ms - newest
    why = f"its newest record was {age:,} ms old at the end, and retention.ms is {retention:,}"
    return Kept(max(due, committed, opened.time), why, row)


RETENTION_RUNS: Final = Property(
    name="retention-runs",
    promise="A broker deletes the segments that its settings of retention or the start of the log allow to delete.",
    unit="logs of living brokers, those that are compacted among them",
    unknown="The harness did not record the settings, no log of a living broker was read, or the machine was slow.",
    source="UnifiedLog.deleteOldSegments, LogManager (kafka-log-retention).",
    check=Retention,
    decided_from=DECIDED_FROM,
    recorded_since=5,
    reason=explain.retention_runs,
    breaks=breaks.RETENTION_RUNS,
)
