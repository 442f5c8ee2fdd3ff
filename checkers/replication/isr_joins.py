"""A replica joins the ISR only when it has caught up.

* **isr-join-caught-up**: when a leader proposes an ISR with a new member, the member is an assigned replica, and since
  it began to follow in this leader epoch its log has reached (a) the leader's high watermark and (b) the offset at
  which the leader's epoch began. The log ends are those that the replica traced itself.
  Smallest break: leader 1 has high watermark 5 and proposes broker 2, whose log never went beyond 4.

Why (b): a new leader's high watermark may lag behind what its predecessors committed; the start of its epoch does not
(KAFKA-7128). A replica that joined below it could be elected without committed records.

The idea: a replica fetches in a leader epoch only after it has traced that it follows in this epoch, and a fetch states
the end of its log. So the highest end traced between that event and the proposal is at least what any fetch may have
stated, and an end below the bound is certain. Between two rare events of a partition only the highest end and the last
high watermark of each replica count: ``reduce`` keeps those rows alone.

What a correct cluster does and is not convicted for: the member fetches, and is truncated, killed or loses its log
before the leader handles the fetch, because its highest end counts, not its last; the member gives up a log that ends
before the leader's begins; a deposed leader continues, and is judged by its own high watermark and epoch.

Limits: a proposed member that traced nothing at all, such as a broker of Apache Kafka, is ``unknown``.
Source: Partition.isFollowerInSync, Partition.canAddReplicaToIsr; KAFKA-7128.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nemesis.checkers.breaks import isr_joins as breaks
from nemesis.checkers.explain import isr_joins as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.replication.replica_rows import LOG_END_KINDS, TopicKey, partitions
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

_FREQUENT: Final = (*LOG_END_KINDS, Kind.HIGH_WATERMARK)


@dataclass(slots=True)
class Leadership:
    """One leader epoch of one process."""

    began: Row
    """The first report that it leads in this epoch."""
    mark: Row
    """The last report of its high watermark."""


@dataclass(slots=True)
class Replicas:
    """What is known of one partition's replicas up to some event."""

    leaderships: dict[tuple[str, int | None], Leadership] = field(default_factory=dict)
    """By process and incarnation."""
    reached: dict[int, dict[int, Row]] = field(default_factory=dict)
    """By broker and leader epoch: the report of the highest end of its log since it first followed in this epoch."""


class IsrJoins(EventListCheck):
    kinds = frozenset(
        {
            *_FREQUENT,
            Kind.BROKER_STARTED,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.ISR_CHANGE_PROPOSED,
        }
    )
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "leader_epoch",
        "log_end_offset",
        "high_watermark",
        "replicas",
        "isr",
        "maximal_isr",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ISR_JOIN_CAUGHT_UP,)

    def reduce(self, segment: Segment) -> list[Row]:
        rows = list(segment.only(frozenset({Kind.BROKER_STARTED})).events(*self.columns))
        for _, part in partitions(segment):
            rows += part.take(_telling(part)).events(*self.columns)
        return rows

    def judge(self, rows: list[Row]) -> Results:
        tracing = frozenset(event.node for _, event in rows)
        by_partition: dict[TopicKey, Replicas] = {}
        findings: list[Finding] = []
        checked = 0
        for row, event in rows:
            if event.topic is None or event.partition is None:
                continue
            key = (event.topic, event.topic_id, event.partition)
            replicas = by_partition.setdefault(key, Replicas())
            if event.kind == Kind.ISR_CHANGE_PROPOSED:
                joining = sorted({*(event.maximal_isr or ())} - {*(event.isr or ())})
                checked += len(joining)
                for member in joining:
                    findings += _judged(replicas, (row, event), member, tracing)
            else:
                checked += event.kind == Kind.BECOME_LEADER
                _take_in(replicas, (row, event))
        return conclude(ISR_JOIN_CAUGHT_UP, checked=checked, findings=findings)


def _telling(part: Segment) -> Numbers:
    """The positions of the rows of one partition that count, in their order.

    Rare events all do. Between two of these, the row with the highest end of each broker does, because ``Replicas``
    keeps maxima that only rare events begin or read, and the last high watermark of each broker.
    """
    frequent = part.is_kind(*_FREQUENT)
    is_mark = part.is_kind(Kind.HIGH_WATERMARK)
    between, nodes = np.cumsum(~frequent), part.numbers("node")
    numbers = np.arange(len(part))
    kept = [np.flatnonzero(~frequent)]
    for positions, value in (
        (np.flatnonzero(frequent & ~is_mark), part.numbers("log_end_offset")),
        (np.flatnonzero(is_mark), numbers),
    ):
        group = (between[positions], nodes[positions])
        ranked = positions[np.lexsort((numbers[positions], value[positions], *group))]
        is_last = np.ones(len(ranked), dtype=np.bool_)
        is_last[:-1] = (np.diff(between[ranked]) != 0) | (np.diff(nodes[ranked]) != 0)
        kept.append(ranked[is_last])
    return np.sort(np.concatenate(kept))


def _take_in(replicas: Replicas, reported: Row) -> None:
    _, event = reported
    process = (event.process, event.incarnation)
    if event.kind == Kind.BECOME_LEADER:
        known = replicas.leaderships.get(process)
        if known is None or known.began[1].leader_epoch != event.leader_epoch:
            replicas.leaderships[process] = Leadership(reported, reported)
    elif event.kind == Kind.HIGH_WATERMARK:
        if process in replicas.leaderships:
            replicas.leaderships[process].mark = reported
    elif event.node is not None:
        by_epoch = replicas.reached.setdefault(event.node, {})
        for epoch, highest in by_epoch.items():
            if _end(highest) < _end(reported):
                by_epoch[epoch] = reported
        if event.kind == Kind.BECOME_FOLLOWER and event.leader_epoch is not None:
            by_epoch.setdefault(event.leader_epoch, reported)


def _end(reported: Row) -> int:
    end = reported[1].log_end_offset
    return -1 if end is None else end


def _judged(
    replicas: Replicas, proposed: Row, member: int, tracing: frozenset[int | None]
) -> list[Finding]:
    row, event = proposed
    leadership = replicas.leaderships.get((event.process, event.incarnation))
    if leadership is None or leadership.began[1].leader_epoch != event.leader_epoch:
        return []
    name, tp = ISR_JOIN_CAUGHT_UP.name, tp_name(event.topic, event.partition)
    claim = f"Leader {event.node} of {tp} proposed broker {member} for the ISR in leader epoch {event.leader_epoch}"
    began_row, began = leadership.began
    if began.replicas and member not in began.replicas:
        sentence = f"{claim}, and the replicas are {began.replicas}."
        return [finding(name, tp, sentence, began_row, row)]
    if member not in tracing:
        sentence = f"{claim}, and the broker left no trace that says what it held."
        return [finding(name, tp, sentence, row, verdict=Verdict.UNKNOWN)]
    reached = replicas.reached.get(member, {}).get(event.leader_epoch or 0)
    mark_row, mark = leadership.mark
    bounds = (
        (mark.high_watermark or 0, mark_row, "its high watermark was"),
        (began.log_end_offset or 0, began_row, "its epoch began at"),
    )
    bound, bound_row, words = max(bounds, key=lambda item: item[0])
    if reached is None:
        sentence = f"{claim}, in which that broker had not begun to follow."
        return [finding(name, tp, sentence, began_row, row)]
    if _end(reached) >= bound:
        return []
    sentence = (
        f"{claim}: {words} {bound}, and the broker's log had reached {_end(reached)} at most."
    )
    return [finding(name, tp, sentence, *sorted((reached[0], bound_row)), row)]


ISR_JOIN_CAUGHT_UP: Final = Property(
    name="isr-join-caught-up",
    promise="A replica joins the ISR only when it has reached the high watermark and the start of the leader epoch.",
    unit="terms of leaders and proposed members",
    unknown="No broker became leader, or a proposed member traced nothing at all.",
    source="Partition.isFollowerInSync; KAFKA-7128.",
    check=IsrJoins,
    decided_from=frozenset({EventSource.TRACES}),
    reason=explain.isr_join_caught_up,
    breaks=breaks.ISR_JOIN_CAUGHT_UP,
)
