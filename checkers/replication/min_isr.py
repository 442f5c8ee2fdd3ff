"""An acknowledgement under ``acks=all`` has enough in-sync replicas behind it.

* **min-isr-behind-ack**: when a leader acknowledges a record under ``acks=all``, the committed ISR has at least
  ``min.insync.replicas`` members, or had when the high watermark passed the record. A partition of fewer replicas needs
  all of them.
  Smallest break: ``min.insync.replicas`` is 2; leader 1 acknowledges offset 7 with ISR [1].

The idea: of each leader and each size of the ISR, the highest acknowledged offset that no high watermark of a larger
ISR had passed before tells whether there was any, so it is a ``Fold``. Which size is too small is known at the end.

What a correct cluster does and is not convicted for: the ISR shrinks between the moment in which the record is
committed and the acknowledgement; acknowledgements under other ``acks``; a broker whose setting changes while it runs,
of which the smallest value counts.

Limits: settings of topics are not recorded; a topic with its own ``min.insync.replicas`` is judged by the broker's.
Source: Partition.checkEnoughReplicasReachOffset; KAFKA-15583; Kafka's documentation of ``min.insync.replicas``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from nemesis.checkers.breaks import min_isr as breaks
from nemesis.checkers.explain import own_logs as explain
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.replication.replica_rows import TopicKey, partitions
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

ALL: Final = -1
_SETTINGS: Final = (Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED)


class Leader(NamedTuple):
    """A leader and the number of members of its ISR."""

    node: int
    incarnation: int
    isr_size: int


class Acknowledged(NamedTuple):
    """The highest offset that was acknowledged before a high watermark of a larger ISR had passed it."""

    offset: int
    row: int


@dataclass(slots=True)
class PartitionAcks:
    acks: dict[Leader, Acknowledged] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)
    """By size of the ISR, the highest high watermark."""
    replicas: int | None = None
    """The smallest number of replicas that the partition had."""


@dataclass(slots=True)
class MinIsrSummary:
    checked: int = 0
    needed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By broker and incarnation: the smallest setting, and the row that reports it."""
    partitions: dict[TopicKey, PartitionAcks] = field(default_factory=dict)


class MinIsrBehindAck(Fold[MinIsrSummary]):
    kinds = frozenset(
        {*_SETTINGS, Kind.PRODUCE_ACKNOWLEDGED, Kind.HIGH_WATERMARK, Kind.BECOME_LEADER}
    )
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "acks",
        "offset",
        "last_offset",
        "high_watermark",
        "isr",
        "replicas",
        "min_insync_replicas",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (MIN_ISR_BEHIND_ACK,)

    def reduce(self, segment: Segment) -> MinIsrSummary:
        summary = MinIsrSummary(needed=_settings(segment.only(frozenset(_SETTINGS)).events()))
        for key, part in partitions(segment):
            checked, summary.partitions[key] = _acks(part)
            summary.checked += checked
        return summary

    def combine(self, a: MinIsrSummary, b: MinIsrSummary) -> MinIsrSummary:
        joined = dict(a.partitions)
        for key, later in b.partitions.items():
            joined[key] = _chain(joined[key], later) if key in joined else later
        needed = dict(a.needed)
        for process, setting in b.needed.items():
            needed[process] = min(setting, needed.get(process, setting))
        return MinIsrSummary(a.checked + b.checked, needed, joined)

    def finish(self, summary: MinIsrSummary) -> Results:
        findings = []
        for (topic, _, partition), acks in summary.partitions.items():
            for leader, acknowledged in acks.acks.items():
                setting = summary.needed.get((leader.node, leader.incarnation))
                if setting is None:
                    continue
                needed = setting[0] if acks.replicas is None else min(setting[0], acks.replicas)
                if leader.isr_size >= needed:
                    continue
                tp = tp_name(topic, partition)
                sentence = (
                    f"Leader {leader.node} acknowledged offset {acknowledged.offset} of {tp} under acks=all with "
                    f"{leader.isr_size} in-sync replicas; min.insync.replicas is {needed}."
                )
                findings.append(finding(self.name, tp, sentence, setting[1], acknowledged.row))
        return conclude(MIN_ISR_BEHIND_ACK, checked=summary.checked, findings=findings)


def _settings(rows: Iterable[tuple[int, Event]]) -> dict[tuple[int, int], tuple[int, int]]:
    needed: dict[tuple[int, int], tuple[int, int]] = {}
    for row, event in rows:
        if event.node is not None and event.min_insync_replicas is not None:
            process = (event.node, event.incarnation or 0)
            setting = (event.min_insync_replicas, row)
            needed[process] = min(setting, needed.get(process, setting))
    return needed


def _acks(part: Segment) -> tuple[int, PartitionAcks]:
    """Return how many acknowledgements the rows of one partition have, and their summary."""
    summary = PartitionAcks(replicas=_replicas(part))
    sizes = _lengths(part, "isr")
    is_mark = part.is_kind(Kind.HIGH_WATERMARK)
    acked = part.is_kind(Kind.PRODUCE_ACKNOWLEDGED) & (part.numbers("acks", 0) == ALL) & (sizes > 0)
    marks = np.where(is_mark, part.numbers("high_watermark"), 0)
    summary.passed = {
        int(size): int(marks[is_mark & (sizes == size)].max())
        for size in np.unique(sizes[is_mark]).tolist()
    }
    nodes, incarnations = part.numbers("node"), part.numbers("incarnation", 0)
    last = np.maximum(part.numbers("last_offset"), part.numbers("offset"))
    for size in np.unique(sizes[acked]).tolist():
        # What a larger ISR has committed before needs nothing any more, also with a smaller ISR now.
        passed = np.maximum.accumulate(np.where(is_mark & (sizes > size), marks, 0))
        open_acks = np.flatnonzero(acked & (sizes == size) & (last >= passed))
        for node, incarnation in sorted(
            {(int(nodes[index]), int(incarnations[index])) for index in open_acks}
        ):
            acks_of_leader = open_acks[
                (nodes[open_acks] == node) & (incarnations[open_acks] == incarnation)
            ]
            top = int(acks_of_leader[np.argmax(last[acks_of_leader])])
            summary.acks[Leader(node, incarnation, size)] = Acknowledged(
                int(last[top]), int(part.rows[top])
            )
    return int(acked.sum()), summary


def _replicas(part: Segment) -> int | None:
    sizes = _lengths(part.only(frozenset({Kind.BECOME_LEADER})), "replicas")
    known = sizes[sizes > 0]
    return int(known.min()) if len(known) else None


def _lengths(part: Segment, name: str) -> Numbers:
    """The number of elements of this list in each row; 0 where it is unset."""
    if not len(part) or name not in part.columns.names:
        return np.zeros(len(part), dtype=np.int64)
    lengths = pc.fill_null(pc.list_value_length(part.columns.arrow(name)), 0)
    return np.asarray(lengths.to_numpy(), dtype=np.int64)


def _chain(a: PartitionAcks, b: PartitionAcks) -> PartitionAcks:
    """Join two neighbouring segments: what a larger ISR had passed before covers acknowledgements of the later one."""
    acks = dict(a.acks)
    for leader, later in b.acks.items():
        passed = max((mark for size, mark in a.passed.items() if size > leader.isr_size), default=0)
        is_highest = leader not in acks or later.offset > acks[leader].offset
        if later.offset >= passed and is_highest:
            acks[leader] = later
    passed_by_size = dict(a.passed)
    for size, mark in b.passed.items():
        passed_by_size[size] = max(mark, passed_by_size.get(size, 0))
    counts = [count for count in (a.replicas, b.replicas) if count is not None]
    return PartitionAcks(acks, passed_by_size, min(counts, default=None))


MIN_ISR_BEHIND_ACK: Final = Property(
    name="min-isr-behind-ack",
    promise="With acks=all a produce is acknowledged only with min.insync.replicas in-sync replicas.",
    unit="acknowledgements",
    unknown="No produce under ``acks=all`` was acknowledged.",
    source="Partition.checkEnoughReplicasReachOffset; KAFKA-15583.",
    check=MinIsrBehindAck,
    decided_from=frozenset({EventSource.TRACES}),
    reason=explain.min_isr_behind_ack,
    breaks=breaks.MIN_ISR_BEHIND_ACK,
)
