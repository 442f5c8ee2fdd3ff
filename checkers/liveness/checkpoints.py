"""Checkpoints on disk are as old as their intervals at most.

* **checkpoints-kept**: of a replica on a broker that lives until the run ends, the files of the stopped broker hold
  (a) a high watermark that is not below the one that the replica, which led and leads since, had longer than
  ``replica.high.watermark.checkpoint.interval.ms`` before the end;
  (b) a start of the log that is not below the one that the replica had longer than
  ``log.flush.start.offset.checkpoint.interval.ms`` before the end;
  (c) a recovery point that is not below the start of the last segment, if the log had begun that segment longer than
  ``log.flush.offset.checkpoint.interval.ms`` before the end.
  Smallest break: the interval is 5 ms, broker 1 set its high watermark to 3 at 2 ms, the run ends at 9 ms, and the
  checkpoint has 2.

What it is good for: a broker that is killed starts with its checkpoints. An old high watermark is where it would cut
its log if it knew no epoch; an old start brings back records that a client has deleted; an old recovery point makes it
walk segments again.

Why the bound holds: each checkpoint is written in each interval, high watermarks of a leader and starts of a log only
grow meanwhile, and a log syncs a segment when it begins the next one. All counts from the end of the last fault at
the earliest, up to the last measurement of the machine before the end of the run.

What a correct cluster does and is not convicted for: a replica that followed, or was stopped, since it had that high
watermark, since that of a follower may fall; a log that was opened, moved or truncated since; a log whose last segment
its process had not begun itself. What the machine may explain is ``unknown``.
Limit: with Kafka's default intervals of 60 seconds (b) and (c) judge few runs.
Source: ReplicaManager (highwatermark-checkpoint), LogManager (kafka-recovery-point-checkpoint,
kafka-log-start-offset-checkpoint).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import checkpoints as breaks
from nemesis.checkers.explain import checkpoints as explain
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
    reached_by,
)
from nemesis.checkers.liveness.log_ends import MS
from nemesis.checkers.replication.replica_rows import TopicKey
from nemesis.history.events import Kind
from nemesis.history.vocabulary.harness import (
    LOG_START_INTERVAL,
    MARK_INTERVAL,
    RECOVERY_POINT_INTERVAL,
)


class Due(NamedTuple):
    """What a checkpoint has to have reached."""

    label: str
    interval: str
    """The name of the setting."""
    expected: int
    stored: int
    since: int
    """In ns."""
    row: int


class Checkpoints(LeftLogs):
    depends_on = (MARK_INTERVAL, LOG_START_INTERVAL, RECOVERY_POINT_INTERVAL)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CHECKPOINTS_KEPT,)

    def conclude(self, checked: int, findings: list[Finding]) -> Results:
        return conclude(CHECKPOINTS_KEPT, checked=checked, findings=findings)

    def judge(self, key: TopicKey, replica: Replica, traced: Traced, run: Run) -> Iterator[Finding]:
        for due in (
            _mark(replica, traced, run),
            _start(replica, traced, run),
            _recovery_point(replica, traced, run),
        ):
            if due is None or due.stored >= due.expected:
                continue
            interval_ms = run.stated[due.interval]
            waited_ms = (run.until - max(due.since, run.since)) // MS
            sentence = (
                f"The files of broker {replica.node} have {due.stored} as {due.label} of {tp_name(key[0], key[2])}, "
                f"which had been {due.expected} for {waited_ms:,} ms. {due.interval} is {interval_ms:,}."
            )
            rows = (due.row, replica.stored[0])
            yield from late(
                CHECKPOINTS_KEPT.name, key, run, due.since, interval_ms, sentence, *rows
            )


def _mark(replica: Replica, traced: Traced, run: Run) -> Due | None:
    """Return the last high watermark of the leader that is old enough."""
    marks, (_, opened) = traced.marks, replica.opened
    due = run.until - run.stated[MARK_INTERVAL] * MS
    after = max(opened.time, replica.settled)
    own = np.flatnonzero((marks.node == replica.node) & (marks.time > after) & (marks.time < due))
    if not len(own):
        return None
    last = int(own[int(np.argmax(marks.end[own]))])
    stored = replica.stored[1].high_watermark or 0
    return Due(
        "the high watermark",
        MARK_INTERVAL,
        int(marks.end[last]),
        stored,
        int(marks.time[last]),
        int(marks.row[last]),
    )


def _start(replica: Replica, traced: Traced, run: Run) -> Due | None:
    """Return the last start of the log that is old enough."""
    due = run.until - run.stated[LOG_START_INTERVAL] * MS
    moved = [
        item
        for item in traced.rows
        if item[1].kind == Kind.LOG_START_OFFSET
        and item[1].node == replica.node
        and replica.opened[1].time <= item[1].time < due
    ]
    if not moved:
        return None
    row, event = moved[-1]
    stored = replica.stored[1].log_start_offset or 0
    return Due(
        "the start", LOG_START_INTERVAL, event.log_start_offset or 0, stored, event.time, row
    )


def _recovery_point(replica: Replica, traced: Traced, run: Run) -> Due | None:
    """Return the start of the last segment that the last process of the broker began early enough."""
    opened_row, opened = replica.opened
    due = run.until - run.stated[RECOVERY_POINT_INTERVAL] * MS
    end = reached_by(traced.ends, replica, due, None)
    opened_at = opened.log_end_offset or 0
    base = max((base for base in replica.bases[1:] if opened_at < base < end), default=None)
    if base is None:
        return None
    since = reached(traced.ends, replica, base + 1, None) or opened.time
    stored = replica.stored[1].recovery_point or 0
    return Due("the recovery point", RECOVERY_POINT_INTERVAL, base, stored, since, opened_row)


CHECKPOINTS_KEPT: Final = Property(
    name="checkpoints-kept",
    promise="High watermarks, starts and recovery points on disk are as old as their intervals at most.",
    unit="logs of living brokers",
    unknown="The harness did not record the intervals, no log of a living broker was read, or the machine was slow.",
    source="ReplicaManager (highwatermark-checkpoint), LogManager (kafka-recovery-point-checkpoint); KAFKA-1647.",
    check=Checkpoints,
    decided_from=DECIDED_FROM,
    recorded_since=7,
    reason=explain.checkpoints_kept,
    breaks=breaks.CHECKPOINTS_KEPT,
)
