"""What a replica does with its own log: a leader never cuts it, and nothing that it knows points behind the log's end.

* **leader-keeps-log**: from the moment in which a broker becomes the leader of a partition until it follows, stops the
  replica or its process ends, it does not truncate the log, and a move to another log directory loses no records.
  Smallest break: broker 1 becomes leader, then truncates to 3.
* **hw-within-log**: whenever a replica reports its high watermark and the end of its log together, the high watermark
  is at most that end: when the log is opened, when the replica becomes leader or follower, is truncated, loses
  records at its start or moves. What a leader reports when its high watermark moves is ``hw-bounded``'s.
  Smallest break: a log is opened that ends at 4, with high watermark 5.
* **producers-within-log**: whenever a replica reports how far the producers reach that its log remembers, the last
  batch of each of them lies before the end of the log: when the log is opened, when the replica becomes leader or
  follower, is truncated or moves. What the log remembers of producers follows from the batches in it (KIP-98): a
  leader answers a batch that it remembers as a duplicate, without appending it. If the batch was cut, its record is
  acknowledged and on no replica.
  Smallest break: a log is truncated and ends at 3; it remembers a producer whose last batch ends before offset 5.

What a correct cluster does and is not convicted for: a leader that was deposed truncates as soon as it follows; a log
that is opened again is shorter than before a power cut; a replica that was stopped, or whose topic was deleted, has no
role any more; a producer is remembered longer than its batches, which were deleted at the start of the log; a producer
is forgotten after a time.

Limits: a truncation that no event reports is not seen here. That a log remembers every producer whose batches it holds
is not judged here: ``duplicate`` shows what follows when it does not.
Source: Partition.makeLeader, ReplicaFetcherThread.truncate, UnifiedLog.updateHighWatermark; KIP-101: only followers
truncate; ProducerStateManager.truncateAndReload.
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
_REPORT_PRODUCERS: Final = frozenset(
    {
        Kind.LOG_LOADED,
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
        Kind.TRUNCATE,
        Kind.LOG_DIR_CHANGED,
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
        "producers_end",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADER_KEEPS_LOG, HW_WITHIN_LOG, PRODUCERS_WITHIN_LOG)

    def judge(self, rows: list[Row]) -> Results:
        cut, terms = _cut_by_leaders(rows)
        above, reports = _above_the_end(rows)
        beyond, memories = _producers_beyond_the_end(rows)
        return (
            conclude(LEADER_KEEPS_LOG, checked=terms, findings=cut),
            conclude(HW_WITHIN_LOG, checked=reports, findings=above),
            conclude(PRODUCERS_WITHIN_LOG, checked=memories, findings=beyond),
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
                sentence = f"{leader} truncated its log, which ends at {end} since."
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


def _producers_beyond_the_end(rows: list[Row]) -> tuple[list[Finding], int]:
    """Return the producers that logs remember beyond their end, and how many reports were compared."""
    findings: list[Finding] = []
    reports = 0
    for row, event in rows:
        known, end = event.producers_end, event.log_end_offset
        if event.kind not in _REPORT_PRODUCERS or known is None or end is None:
            continue
        reports += 1
        if known > end:
            tp = tp_name(event.topic, event.partition)
            sentence = (
                f"Broker {event.node} remembers a producer of {tp} whose last batch has offset {known - 1}, behind the "
                f"end of its own log, {end}."
            )
            findings.append(finding(PRODUCERS_WITHIN_LOG.name, tp, sentence, row))
    return findings, reports


LEADER_KEEPS_LOG: Final = Property(
    name="leader-keeps-log",
    promise="A leader never cuts its own log.",
    unit="terms of leaders",
    unknown="No broker became leader.",
    source="KIP-101: only followers truncate; ReplicaFetcherThread.truncate.",
    check=OwnLog,
    decided_from=frozenset({EventSource.TRACES}),
    stand_ins=frozenset({EventSource.BROKER_LOGS}),
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
    stand_ins=frozenset({EventSource.BROKER_LOGS}),
    reason=own_logs.hw_within_log,
    breaks=breaks.HW_WITHIN_LOG,
)

PRODUCERS_WITHIN_LOG: Final = Property(
    name="producers-within-log",
    promise="A replica remembers no batch of a producer that its own log does not reach.",
    unit="reports of remembered producers",
    unknown="No replica reported how far the producers reach that it remembers.",
    source="ProducerStateManager.truncateAndReload; KIP-98.",
    check=OwnLog,
    decided_from=frozenset({EventSource.TRACES}),
    recorded_since=6,
    reason=own_logs.producers_within_log,
    breaks=breaks.PRODUCERS_WITHIN_LOG,
)
