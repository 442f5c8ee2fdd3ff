"""The queue anomalies, one partition at a time.

A send is *acknowledged* if it returned ``ok`` under ``acks=all``; a value is *committed* at an offset if it was
acknowledged there or read there by anybody. The order of versions is given: offset → value.

* **lost-write**: a committed value that is gone: reads at the end went past its offset and none returned it. Those
  reads are the final ones, or all reads if the run has none.
  Smallest break: ok(7 at 0), ok(8 at 1), a poll from 0 returns offset 1 only.
* **unseen**: an acknowledged value that the final reads, which ran to the end, did not return.
  Smallest break: ok(7 at 0); the final read ends at high watermark 0.
* **withheld**: an acknowledged or read record that the final reads did not return, although they ended before it and
  the broker had answered them without an error, without a batch, and with a high watermark above the record; see
  ``withheld``. Smallest break: ok(7 at 0); two final polls from 0 return nothing and state high watermark 1.
* **stale-read-above-hw**: a record that was read before it was committed, or that vanished after it was read: final
  reads ended below it; or, where brokers trace, it is at or above every high watermark that a leader had traced by then
  (a follower answers, too, and may state more than any leader has said), or at or above the high watermark that the
  same answer states. Kafka takes the high watermark for an answer before it reads and reads up to a newer one, so an
  answer of a broker that does not trace says nothing about its own records.
  Smallest break: a leader traces high watermark 5; a poll returns offset 5.
* **inconsistent-offset**: one offset with several values. Smallest break: ok(7 at 0), a poll returns 8 at 0.
* **dirty-read** (G1a): a value was read whose send certainly failed.
* **poll-skip**, **nonmonotonic-poll**: within one poll, or between successive polls of one consumer, records are
  skipped (poll-skip), repeated or backwards (nonmonotonic-poll). A history has no seeks and no rebalances.
* **earlier-life-read**: what was read of a topic that was deleted is read of the next one of its name; see
  ``topic_incarnations``.
* **nonmonotonic-send**: two sends of one producer, both acknowledged, one after the other, at offsets that do not rise.

What a correct cluster does and is not convicted for: a send whose outcome is unknown (``info``, or no completion)
may be there or not; acks 0 and 1 promise nothing (what the final reads do not have of them is counted, as a number of
``unseen``); a final read that did not reach the high watermark, or asked a
broker that was leader no more, or a new leader whose high watermark had not yet caught up, proves nothing about the
tail (``unknown``); nor does any final read when the cluster had not converged. What a topic held that was deleted need
not be seen again (``unseen``), whoever deleted it: whether anybody had asked for that is the property ``deletion``.
An acknowledged send of which it is not known to which of several topics of one name it went is counted, not judged.
After an unclean election that is permitted losses are reported and allowed. What lies below the log start offset was
deleted by age, by size or on request, and need not be seen; a reader that wanted it goes on from there (whether the
start was raised rightly is the property ``log-start-bounded``). In a compacted log a record may be gone that another
one of its key supersedes (``compaction``): not the last one unless it is a tombstone, none that no cleaner has come by,
none too early.
Markers of transactions take offsets, and what is aborted need not be given to a reader (``gaps``).

A small partition is walked, one operation after the other. A large one is judged in pieces (``certificate``), with the
same result.

Limits: offsets are dense otherwise. A marker explains nothing unless it was traced or read from a file; where brokers
trace nothing and transactions wrote, gaps are not judged below the start of the log, nor where no file was read, unless
a record without a transaction stands there. Nor are records of transactions missed then, if there was no final read.
Source: the kafka workload of jepsen.tests, whose names these are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from nemesis.checkers import unclean
from nemesis.checkers.breaks import clients as breaks
from nemesis.checkers.explain import clients
from nemesis.checkers.framework.compiler import has_compiler
from nemesis.checkers.framework.findings import tp_name
from nemesis.checkers.framework.fold import PartitionedCheck, Results, Rounds, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property, property_names
from nemesis.checkers.framework.rounds import at_once
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.checkers.log import partition_operations as ops
from nemesis.checkers.log.gaps import MARKER_KINDS
from nemesis.checkers.log.partition_rows import Source
from nemesis.checkers.log.report import PartitionReport, count, disorder, judge
from nemesis.checkers.log.topic_incarnations import (
    COLUMNS,
    KINDS,
    acknowledged_sends,
    earlier_incarnation_reads,
    incarnations,
)
from nemesis.checkers.unclean import Permissions
from nemesis.history.events import Kind
from nemesis.history.row_group import RowGroup
from nemesis.history.sources import EventSource

LARGE = 30_000
"""Rows of a partition that are walked in less time than it takes to load the compiled loops."""


class ClientLog(PartitionedCheck[PartitionReport]):
    large = LARGE
    keys = ("topic", "partition")
    kinds = frozenset(
        {
            *KINDS,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.LOG_LOADED,
            Kind.HIGH_WATERMARK,
            Kind.LOG_START_OFFSET,
            Kind.LOG_CLEANED,
            *MARKER_KINDS,
            Kind.LEADER_ELECTED,
            Kind.CONVERGENCE,
            Kind.REPLICA_OFFSETS,
            Kind.STORED_LOG,
            *unclean.KINDS,
        }
    )
    columns = (*ops.COLUMNS, *COLUMNS, *unclean.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (
            LOST_WRITE,
            UNSEEN,
            WITHHELD,
            STALE_READ_ABOVE_HW,
            DUPLICATE,
            INCONSISTENT_OFFSET,
            DIRTY_READ,
            NONMONOTONIC_POLL,
            POLL_SKIP,
            NONMONOTONIC_SEND,
            EARLIER_INCARNATION_READ,
        )

    def check(self, key: Key, segment: Segment) -> PartitionReport:
        report = PartitionReport.of(segment)
        topic, partition = key
        if topic is not None and partition is not None:
            tp = tp_name(topic, partition)
            parts = incarnations(segment)
            for incarnation in parts:
                operations = ops.gather(tp, incarnation.rows)
                judge(
                    operations,
                    disorder(operations),
                    count(operations),
                    report,
                    was_deleted=incarnation.was_deleted,
                )
            report.unassigned_sends = acknowledged_sends(segment) - sum(
                acknowledged_sends(incarnation.rows) for incarnation in parts
            )
            if len(parts) > 1:
                report.findings["earlier-life-read"] += earlier_incarnation_reads(tp, segment)
        return report

    def divide(self, key: Key, groups: Sequence[RowGroup]) -> Rounds[PartitionReport]:
        # Its compiled loops are imported for those who need them only.
        from nemesis.checkers.log.certificate import certify

        topic, partition = key
        report = None
        if topic is not None and partition is not None and has_compiler():
            sources = [Source(group, topic, partition, self.kinds) for group in groups]
            report = yield from certify(tp_name(topic, partition), sources, self.columns)
        if report is None:
            (report,) = yield [partial(at_once, self, key, groups)]
        return report

    def finish(self, summaries: list[tuple[Key, PartitionReport]]) -> Results:
        converged = not any(report.failed_convergence for _, report in summaries)
        permitted = Permissions()
        for _, report in summaries:
            permitted = permitted.join(report.permissions)
        findings: dict[str, list[Finding]] = defaultdict(list)
        checked: dict[str, int] = defaultdict(int)
        for (topic, partition), report in summaries:
            is_excused = permitted.excuse(topic, partition, report.elections)
            excuse = _allowed if is_excused else _as_it_is
            for name in property_names(self):
                findings[name] += report.findings.get(name, [])
                findings[name] += map(excuse, report.unclean.get(name, []))
                checked[name] += report.checked.get(name, 0)
            tail = [*report.tail, *map(excuse, report.unclean_tail)]
            for item in tail:
                findings[item.property].append(item if converged else _in_doubt(item))
        weak_sends = sum(report.weak_sends for _, report in summaries)
        losses = sum(report.permitted_losses for _, report in summaries)
        unassigned = sum(report.unassigned_sends for _, report in summaries)
        numbers: dict[str, float] = {}
        if weak_sends:
            numbers |= {"acks_0_or_1_sends": weak_sends, "acks_0_or_1_lost": losses}
        if unassigned:
            numbers["sends_of_unknown_topic_incarnation"] = unassigned
        return [
            conclude(
                decided,
                checked=checked[decided.name],
                findings=findings[decided.name],
                numbers=numbers if numbers and decided is UNSEEN else None,
            )
            for decided in self.properties()
        ]


def _allowed(item: Finding) -> Finding:
    sentence = f"{item.sentence} An unclean election, which the topic allows, may have caused it."
    return msgspec.structs.replace(item, verdict=Verdict.VALID, sentence=sentence)


def _as_it_is(item: Finding) -> Finding:
    return item


def _in_doubt(item: Finding) -> Finding:
    if item.verdict is not Verdict.INVALID:
        return item
    sentence = (
        f"{item.sentence} The cluster had not converged, so they may have asked the wrong broker."
    )
    return msgspec.structs.replace(item, verdict=Verdict.UNKNOWN, sentence=sentence)


LOST_WRITE: Final = Property(
    name="lost-write",
    promise="No committed record disappears.",
    unit="committed values",
    unknown=(
        "No value was committed, or the final reads may have asked a broker that does not lead."
    ),
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    reason=clients.lost_write,
    breaks=breaks.LOST_WRITE,
)

UNSEEN: Final = Property(
    name="unseen",
    promise="Every acknowledged record is returned by the final reads.",
    unit="acknowledged sends",
    unknown=(
        "A final read did not reach the high watermark, no final read exists, or the cluster had not converged."
    ),
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.HARNESS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    reason=clients.unseen,
    breaks=breaks.UNSEEN,
)

WITHHELD: Final = Property(
    name="withheld",
    promise="A broker that answers a fetch without an error returns what is committed from its offset on.",
    unit="final reads",
    unknown="No final read exists.",
    source="KIP-74; Partition.readRecords, LocalLog.read.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.HARNESS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    recorded_since=5,
    reason=clients.withheld,
    breaks=breaks.WITHHELD,
)

STALE_READ_ABOVE_HW: Final = Property(
    name="stale-read-above-hw",
    promise="No record is read before it is committed, and none vanishes that was read.",
    unit="values read",
    unknown="No consumer read a value.",
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.HARNESS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=clients.stale_read,
    breaks=breaks.STALE_READ_ABOVE_HW,
)

DUPLICATE: Final = Property(
    name="duplicate",
    promise="No record is stored twice.",
    unit="committed values",
    unknown="No value was committed.",
    source="The kafka workload of jepsen.tests. KIP-98 for idempotent producers.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    reason=clients.duplicate,
    reason_covers_excuses=True,
    breaks=breaks.DUPLICATE,
)

INCONSISTENT_OFFSET: Final = Property(
    name="inconsistent-offset",
    promise="An offset holds one record, whoever reads it and whenever.",
    unit="committed values",
    unknown="No value was committed.",
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    reason=clients.inconsistent_offset,
    breaks=breaks.INCONSISTENT_OFFSET,
)

DIRTY_READ: Final = Property(
    name="dirty-read",
    promise="No record is read whose send certainly failed.",
    unit="values read",
    unknown="No consumer read a value.",
    source='The kafka workload of jepsen.tests. G1a of Adya, "Weak Consistency" (1999).',
    check=ClientLog,
    decided_from=frozenset({EventSource.CLIENTS}),
    reason=clients.dirty_read,
    breaks=breaks.DIRTY_READ,
)

NONMONOTONIC_POLL: Final = Property(
    name="nonmonotonic-poll",
    promise="A consumer never goes back or reads a record again.",
    unit="polls",
    unknown="No poll returned.",
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.CLIENTS}),
    reason=clients.order_of_polls,
    breaks=breaks.NONMONOTONIC_POLL,
)

POLL_SKIP: Final = Property(
    name="poll-skip",
    promise="A consumer never skips a record.",
    unit="polls",
    unknown="No poll returned.",
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.CLIENTS}),
    reason=clients.order_of_polls,
    breaks=breaks.POLL_SKIP,
)

NONMONOTONIC_SEND: Final = Property(
    name="nonmonotonic-send",
    promise="Successive acknowledged sends of one producer get growing offsets.",
    unit="acknowledged sends",
    unknown="No send was acknowledged.",
    source="The kafka workload of jepsen.tests.",
    check=ClientLog,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    reason=clients.nonmonotonic_send,
    breaks=breaks.NONMONOTONIC_SEND,
)

EARLIER_INCARNATION_READ: Final = Property(
    name="earlier-life-read",
    promise="No record of a deleted topic is read from the next topic of its name.",
    unit="values read",
    unknown="No consumer read a value.",
    source="KIP-516 (topic ids).",
    check=ClientLog,
    decided_from=frozenset({EventSource.CLIENTS}),
    reason=clients.earlier_incarnation_read,
    breaks=breaks.EARLIER_INCARNATION_READ,
)
