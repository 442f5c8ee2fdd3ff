"""What a replica does with its own log: a leader never cuts it, and no high watermark points behind its end.

* **leader-keeps-log**: from the moment in which a broker becomes the leader of a partition until it follows, stops the
  replica or its process ends, it does not truncate the log, and a move to another log directory loses no records.
  Smallest break: broker 1 becomes leader, then truncates to 3.
* **hw-within-log**: whenever a replica reports its high watermark and the end of its log together, the high watermark
  is at most that end: when the log is opened, when the replica becomes leader or follower, is truncated, loses
  records at its start or moves. What a leader reports when its high watermark moves is ``hw-bounded``'s.
  Smallest break: a log is opened that ends at 4, with high watermark 5.

What a correct cluster does and is not convicted for: a leader that was deposed truncates as soon as it follows; a log
that is opened again is shorter than before a power cut; a replica that was stopped, or whose topic was deleted, has no
role any more.

Limits: a truncation that no event reports is not seen here.
Source: Partition.makeLeader, ReplicaFetcherThread.truncate, UnifiedLog.updateHighWatermark; KIP-101: only followers
truncate.
"""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks import own_logs as breaks
from nemesis.checkers.explain import own_logs
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

_END_THE_ROLE: Final = frozenset({Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED, Kind.LOG_LOADED})
_REPORT_BOTH: Final = frozenset(
    {
        Kind.LOG_LOADED,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
        Kind.TRUNCATE,
        Kind.LOG_DIR_CHANGED,
        Kind.LOG_START_OFFSET,
    }
)


class OwnLog(EventListCheck):
    kinds = frozenset({*_REPORT_BOTH, *_END_THE_ROLE})
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "leader_epoch",
        "log_end_offset",
        "high_watermark",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADER_KEEPS_LOG, HW_WITHIN_LOG)

    def judge(self, rows: list[Row]) -> Results:
        cut, terms = _cut_by_leaders(rows)
        above, reports = _above_the_end(rows)
        return (
            conclude(LEADER_KEEPS_LOG, checked=terms, findings=cut),
            conclude(HW_WITHIN_LOG, checked=reports, findings=above),
        )


def _cut_by_leaders(rows: list[Row]) -> tuple[list[Finding], int]:
    """Return the truncations by leaders, and how many times a broker became leader."""
    leaders: dict[tuple[Any, ...], Row] = {}
    findings: list[Finding] = []
    terms = 0
    for row, event in rows:
        replica = (
            *(event.topic, event.topic_id, event.partition),
            *(event.process, event.incarnation),
        )
        if event.kind == Kind.BECOME_LEADER:
            leaders[replica] = (row, event)
            terms += 1
        elif event.kind in _END_THE_ROLE:
            leaders.pop(replica, None)
        elif replica in leaders:
            began_row, began = leaders[replica]
            tp = tp_name(event.topic, event.partition)
            leader = f"Broker {event.node}, leader of {tp} in leader epoch {began.leader_epoch},"
            end, least = event.log_end_offset, began.log_end_offset
            if event.kind == Kind.TRUNCATE:
                sentence = f"{leader} cut its log, which ends at {end} since."
            elif end is not None and least is not None and end < least:
                sentence = f"{leader} has a log that ends at {end}; it began with one that ended at {least}."
            else:
                continue
            findings.append(finding(LEADER_KEEPS_LOG.name, tp, sentence, began_row, row))
    return findings, terms


def _above_the_end(rows: list[Row]) -> tuple[list[Finding], int]:
    """Return the high watermarks above their log's end, and how many were compared."""
    findings: list[Finding] = []
    reports = 0
    for row, event in rows:
        mark, end = event.high_watermark, event.log_end_offset
        if event.kind not in _REPORT_BOTH or mark is None or end is None:
            continue
        reports += 1
        if mark > end:
            tp = tp_name(event.topic, event.partition)
            sentence = f"Broker {event.node} has high watermark {mark} for {tp}, behind the end of its own log, {end}."
            findings.append(finding(HW_WITHIN_LOG.name, tp, sentence, row))
    return findings, reports


LEADER_KEEPS_LOG: Final = Property(
    name="leader-keeps-log",
    promise="A leader never cuts its own log.",
    unit="terms of leaders",
    unknown="No broker became leader.",
    source="KIP-101: only followers truncate; ReplicaFetcherThread.truncate.",
    check=OwnLog,
    decided_from=frozenset({EventSource.TRACES}),
    reason=own_logs.leader_keeps_log,
    breaks=breaks.LEADER_KEEPS_LOG,
)

HW_WITHIN_LOG: Final = Property(
    name="hw-within-log",
    promise="A replica's high watermark is never behind the end of its own log.",
    unit="reports of a high watermark",
    unknown="No replica reported its high watermark and the end of its log together.",
    source="UnifiedLog.updateHighWatermark, which bounds the checkpoint by the end of the log that is opened.",
    check=OwnLog,
    decided_from=frozenset({EventSource.TRACES}),
    reason=own_logs.hw_within_log,
    breaks=breaks.HW_WITHIN_LOG,
)
