"""The queue anomalies, one partition at a time.

A send is *acknowledged* if it returned ``ok`` under ``acks=all``; a value is *committed* at an offset if it was
acknowledged there or read there by anybody. The order of versions is given: offset → value.

* **lost-write**: a committed value that is gone: reads at the end went past its offset and none returned it. Those
  reads are the final ones, or all reads if the run has none.
  Smallest break: ok(7 at 0), ok(8 at 1), a poll from 0 returns offset 1 only.
* **unseen**: an acknowledged value that the final reads, which ran to the end, did not return.
  Smallest break: ok(7 at 0); the final read ends at high watermark 0.
* **stale-read-above-hw**: a record that was read before it was committed, or that vanished after it was read: it is at
  or above the high watermark that the same answer states, or at or above every high watermark that a leader had traced
  by then (a follower answers, too, and may state more than any leader has said), or final reads ended below it.
  Smallest break: a leader traces high watermark 5; a poll returns offset 5.
* **inconsistent-offset**: one offset with several values. Smallest break: ok(7 at 0), a poll returns 8 at 0.
* **dirty-read** (G1a): a value was read whose send certainly failed.
* **poll-skip**, **nonmonotonic-poll**: within one poll, or between successive polls of one consumer, records are
  skipped (poll-skip), repeated or backwards (nonmonotonic-poll). A history has no seeks and no rebalances.
* **earlier-life-read**: what was read of a topic that was deleted is read of the next one of its name; see ``lives``.
* **nonmonotonic-send**: two sends of one producer, both acknowledged, one after the other, at falling offsets.

What a correct cluster does and is not convicted for: a send whose outcome is unknown (``info``, or no completion)
may be there or not; acks 0 and 1 promise nothing; a final read that did not reach the high watermark, or asked a
broker that was leader no more, or a new leader whose high watermark had not yet caught up, proves nothing about the
tail (``unknown``); nor does any final read when the cluster had not converged. What a topic held that was deleted need
not be seen again (``unseen``), whoever deleted it: whether anybody had asked for that is the property ``deletion``.
After an unclean election that is permitted losses are reported and allowed. What lies below the log start offset was
deleted by age, by size or on request, and need not be seen; a reader that wanted it goes on from there (whether the
start was raised rightly is the property ``log-start-bounded``). In a compacted log a record may be gone that another
one of its key supersedes (``compaction``): not the last one, none that no cleaner has come by, none too early.

Limits: offsets are taken to be dense but for that (no transaction markers); all of one partition's operations fit into
memory. Source: the kafka workload of jepsen.tests, whose names these are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import msgspec

from checkers import unclean
from checkers.findings import tp_name
from checkers.fold import Grouped, Results, conclude
from checkers.log import operations as ops
from checkers.log import polls, writes
from checkers.log.lives import COLUMNS, KINDS, earlier_life_reads, lives
from checkers.model import Finding, Verdict
from checkers.segment import Key, Segment
from checkers.unclean import Election, Permissions, permissions
from history.events import Kind

LOSSES = frozenset(
    {
        "lost-write",
        "unseen",
        "stale-read-above-hw",
        "inconsistent-offset",
        "nonmonotonic-send",
        "duplicate",
    }
)
"""What an unclean election may cause. Until the configuration is known they are kept apart."""


@dataclass(slots=True)
class PartitionReport:
    """What one key came to."""

    findings: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    tail: list[Finding] = field(default_factory=list)
    """Findings of ``unseen`` and ``stale-read-above-hw`` that hold only if the cluster had converged."""
    unclean: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    """As ``findings``, of topics with an unclean election: the losses that it may have caused."""
    unclean_tail: list[Finding] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    """The unclean ones."""
    permissions: Permissions = field(default_factory=Permissions)
    checked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed_convergence: bool = False


class ClientLog(Grouped[PartitionReport]):
    name = "client-log"
    properties = (
        "lost-write",
        "unseen",
        "stale-read-above-hw",
        "duplicate",
        "inconsistent-offset",
        "dirty-read",
        "nonmonotonic-poll",
        "poll-skip",
        "nonmonotonic-send",
        "earlier-life-read",
    )
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
            Kind.LEADER_ELECTED,
            Kind.CONVERGENCE,
            *unclean.KINDS,
        }
    )
    columns = (*ops.COLUMNS, *COLUMNS, *unclean.COLUMNS)
    units = {  # noqa: RUF012
        "lost-write": "committed values",
        "unseen": "acknowledged sends",
        "stale-read-above-hw": "values read",
        "duplicate": "committed values",
        "inconsistent-offset": "committed values",
        "dirty-read": "values read",
        "nonmonotonic-poll": "polls",
        "poll-skip": "polls",
        "nonmonotonic-send": "acknowledged sends",
        "earlier-life-read": "values read",
    }

    def check(self, key: Key, segment: Segment) -> PartitionReport:
        report = PartitionReport()
        checks = segment.where(segment.is_kind(Kind.CONVERGENCE))
        report.failed_convergence = any(ops.failed(event) for _, event in checks.events("error"))
        report.permissions = permissions(segment)
        topic, partition = key
        if topic is not None and partition is not None:
            tp = tp_name(topic, partition)
            parts = lives(segment)
            for life in parts:
                _judge(ops.gather(tp, life.rows), report, was_deleted=life.was_deleted)
            if len(parts) > 1:
                report.findings["earlier-life-read"] += earlier_life_reads(tp, segment)
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
            for name in self.properties:
                findings[name] += report.findings.get(name, [])
                findings[name] += map(excuse, report.unclean.get(name, []))
                checked[name] += report.checked.get(name, 0)
            tail = [*report.tail, *map(excuse, report.unclean_tail)]
            for item in tail:
                findings[item.property].append(item if converged else _in_doubt(item))
        return [
            conclude(name, checked=checked[name], unit=self.units[name], findings=findings[name])
            for name in self.properties
        ]


def _judge(operations: ops.Operations, report: PartitionReport, *, was_deleted: bool) -> None:
    found: dict[str, list[Finding]] = defaultdict(list)
    found["lost-write"] += writes.lost_writes(operations)
    missing = writes.Unseen([], [], []) if was_deleted else writes.unseen(operations)
    found["unseen"] += missing.certain + missing.doubtful
    found["stale-read-above-hw"] += polls.reads_above_hw(operations)
    found["stale-read-above-hw"] += polls.reads_above_all_hws(operations)
    found["duplicate"] += writes.duplicates(operations)
    found["inconsistent-offset"] += polls.inconsistent_offsets(operations)
    found["dirty-read"] += writes.dirty_reads(operations)
    found["nonmonotonic-send"] += writes.nonmonotonic_sends(operations)
    for item in polls.order_of_polls(operations):
        found[item.property].append(item)
    for name, items in found.items():
        kept = report.unclean if operations.unclean and name in LOSSES else report.findings
        kept[name] += items
    report.elections += operations.unclean
    tail = report.unclean_tail if operations.unclean else report.tail
    tail += missing.tail
    tail += [] if was_deleted else writes.vanished(operations)
    _count(operations, report.checked, was_deleted=was_deleted)


def _count(operations: ops.Operations, checked: dict[str, int], *, was_deleted: bool) -> None:
    read = {value for poll in operations.polls for value in poll.values}
    acknowledged = {send.value for send in operations.acknowledged}
    for name in ("lost-write", "duplicate", "inconsistent-offset"):
        checked[name] += len(read | acknowledged)
    checked["nonmonotonic-send"] += len(operations.acknowledged)
    checked["unseen"] += 0 if was_deleted else len(operations.acknowledged)
    for name in ("dirty-read", "earlier-life-read", "stale-read-above-hw"):
        checked[name] += len(read)
    for name in ("nonmonotonic-poll", "poll-skip"):
        checked[name] += len(operations.polls)


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
