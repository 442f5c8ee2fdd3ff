"""What one partition comes to: its findings, and what depends on the rest of the history to be judged.
 ``disorder`` and ``judge`` put together the functions of ``polls`` and ``send_anomalies``, one for each anomaly. The
first is about neighbours in time, the second about what stands where; a partition that is too large to be walked has
them looked for apart.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.log import partition_operations as ops
from nemesis.checkers.log import polls, send_anomalies
from nemesis.checkers.log.withheld import WITHHELD, withheld
from nemesis.checkers.unclean import Election, Permissions, permissions
from nemesis.history.events import Kind

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
    weak_sends: int = 0
    """Sends under acks 0 or 1 that returned without an error."""
    permitted_losses: int = 0
    """Those of them that the final reads do not have."""
    unassigned_sends: int = 0
    """Sends acknowledged under acks=all of which no incarnation of their topic is known."""
    failed_convergence: bool = False

    @classmethod
    def of(cls, segment: Segment) -> PartitionReport:
        """A report that has what these rows say of the cluster."""
        report = cls()
        checks = segment.where(segment.is_kind(Kind.CONVERGENCE))
        report.failed_convergence = any(ops.failed(event) for _, event in checks.events("error"))
        report.permissions = permissions(segment)
        return report


@dataclass(frozen=True, slots=True)
class Disorder:
    """What is wrong with the order in which clients saw records and acknowledgements."""

    polls: list[Finding] = field(default_factory=list)
    reads: list[Finding] = field(default_factory=list)
    """Of records that were not committed yet."""
    sends: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there was to look at."""

    committed: int
    """Values that were acknowledged or read."""
    read: int
    """Values that were read."""
    acknowledged: int
    """Sends."""
    polls: int


def disorder(operations: ops.Operations) -> Disorder:
    """Walk the operations in their order."""
    return Disorder(
        list(polls.order_of_polls(operations)),
        [*polls.reads_above_hw(operations), *polls.reads_above_all_hws(operations)],
        list(send_anomalies.nonmonotonic_sends(operations)),
    )


def count(operations: ops.Operations) -> Counts:
    """Count what there is."""
    read = {value for poll in operations.polls for value in poll.values}
    acknowledged = {send.value for send in operations.acknowledged}
    return Counts(
        len(read | acknowledged), len(read), len(operations.acknowledged), len(operations.polls)
    )


def judge(
    operations: ops.Operations,
    disorder: Disorder,
    counts: Counts,
    report: PartitionReport,
    *,
    was_deleted: bool,
) -> None:
    """Add to the report what one life of the partition comes to."""
    findings: dict[str, list[Finding]] = defaultdict(list)
    findings["lost-write"] += send_anomalies.lost_writes(operations)
    missing = (
        send_anomalies.Unseen([], [], []) if was_deleted else send_anomalies.unseen(operations)
    )
    findings["unseen"] += missing.certain + missing.doubtful
    findings["stale-read-above-hw"] += disorder.reads
    findings["duplicate"] += send_anomalies.duplicates(operations)
    findings["inconsistent-offset"] += polls.inconsistent_offsets(operations)
    findings["dirty-read"] += send_anomalies.dirty_reads(operations)
    findings["nonmonotonic-send"] += disorder.sends
    for item in disorder.polls:
        findings[item.property].append(item)
    for name, items in findings.items():
        kept = report.unclean if operations.unclean and name in LOSSES else report.findings
        kept[name] += items
    if not was_deleted:
        report.weak_sends += sum(send.promises_nothing for send in operations.sends)
        report.permitted_losses += send_anomalies.permitted_losses(operations)
        report.findings[WITHHELD] += withheld(operations)
        report.checked[WITHHELD] += len(operations.final_reads)
    report.elections += operations.unclean
    tail = report.unclean_tail if operations.unclean else report.tail
    tail += missing.tail
    tail += [] if was_deleted else send_anomalies.vanished(operations)
    _add(counts, report.checked, was_deleted=was_deleted)


def _add(counts: Counts, checked: dict[str, int], *, was_deleted: bool) -> None:
    for name in ("lost-write", "duplicate", "inconsistent-offset"):
        checked[name] += counts.committed
    checked["nonmonotonic-send"] += counts.acknowledged
    checked["unseen"] += 0 if was_deleted else counts.acknowledged
    for name in ("dirty-read", "earlier-life-read", "stale-read-above-hw"):
        checked[name] += counts.read
    for name in ("nonmonotonic-poll", "poll-skip"):
        checked[name] += counts.polls
