"""Records at the start of a log go only when everybody agrees that they are done with.

* **log-start-bounded**: a replica's log never starts above its own high watermark; while its process lives the start
  never falls, unless the log was emptied or its replica taken away; it is raised for a client only as far as some
  client had asked for.
  Smallest break: broker 1, whose high watermark is 5, deletes a segment and starts at 6 (KAFKA-5634).
  Nor does compaction take part in what lies above that: a record that may yet be truncated supersedes none.

What a correct cluster does and is not convicted for: DeleteRecords names the topic and not its id, so a client that has
not heard of a deletion deletes records of the next topic of that name; starting lower after a crash (the start is
checkpointed from time to time), different starts at different replicas, a follower that starts where its leader does.

Limits: whether what was deleted by age or size was old or large enough is not judged.
Source: KIP-107; the guarantees of shared logs in Kafka's documentation of DeleteRecords.
"""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks import replicas as breaks
from nemesis.checkers.explain import replicas
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

BY_CLIENT = "client-record-deletion"
EVERYTHING = 2**63 - 1
_STATED = (Kind.LOG_START_OFFSET, Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.BECOME_LEADER)
_RESTARTED = (Kind.TRUNCATE, Kind.REPLICA_STOPPED)


class LogStartBounded(EventListCheck):
    kinds = frozenset({*_STATED, *_RESTARTED, Kind.LOG_CLEANED, Kind.INVOKE})
    columns = (
        "f",
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "offset",
        "last_offset",
        "log_start_offset",
        "high_watermark",
        "reason",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LOG_START_BOUNDED,)

    def reduce(self, segment: Segment) -> list[Row]:
        asked = segment.is_kind(Kind.INVOKE) & segment.is_word("f", {"delete-records"})
        kept = segment.is_kind(*_STATED, *_RESTARTED, Kind.LOG_CLEANED) | asked
        return list(segment.where(kept).events(*self.columns))

    def judge(self, rows: list[Row]) -> Results:
        findings: list[Finding] = []
        asked: dict[tuple[Any, ...], int] = {}
        starts: dict[tuple[Any, ...], tuple[int, int]] = {}
        checked = 0
        for row, event in rows:
            partition = (event.topic, event.partition)
            replica = (*partition, event.topic_id, event.process, event.incarnation)
            if event.kind == Kind.INVOKE:
                offset = EVERYTHING if event.offset in (None, -1) else event.offset
                asked[partition] = max(offset or 0, asked.get(partition, 0))
                continue
            if event.kind in _RESTARTED:
                starts.pop(replica, None)
                continue
            start, mark = event.log_start_offset, event.high_watermark
            if event.kind == Kind.LOG_CLEANED:
                checked += 1
                if (event.last_offset or 0) >= (mark or 0):
                    tp = tp_name(event.topic, event.partition)
                    sentence = (
                        f"Broker {event.node} compacted its log of {tp} up to offset {event.last_offset}, though its "
                        f"high watermark was {mark}."
                    )
                    findings.append(finding(self.name, tp, sentence, row))
                continue
            if start is None or mark is None:
                continue
            checked += 1
            tp = tp_name(event.topic, event.partition)
            subject = f"Broker {event.node}'s log of {tp}"
            before, before_row = starts.get(replica, (start, row))
            if start > mark:
                sentence = f"{subject} starts at {start}, above its high watermark {mark}."
                findings.append(finding(self.name, tp, sentence, row))
            if start < before:
                sentence = f"{subject} starts at {start} again, after it had started at {before}."
                findings.append(finding(self.name, tp, sentence, before_row, row))
            if event.reason == BY_CLIENT and start > asked.get(partition, 0):
                sentence = f"{subject} lost the records below {start}, which no client had asked to delete."
                findings.append(finding(self.name, tp, sentence, row))
            starts[replica] = (start, row)
        return conclude(LOG_START_BOUNDED, checked=checked, findings=findings)


LOG_START_BOUNDED: Final = Property(
    name="log-start-bounded",
    promise="A log loses its oldest records only where they are committed, and as asked.",
    unit="log starts",
    unknown="No replica traced where its log starts.",
    source="KIP-107, KAFKA-5634; Kafka's documentation of DeleteRecords.",
    check=LogStartBounded,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.TRACES}),
    reason=replicas.log_start_bounded,
    breaks=breaks.LOG_START_BOUNDED,
)
