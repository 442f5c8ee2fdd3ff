"""A replica joins the ISR only when it has caught up.

* **isr-join-caught-up**: when a leader proposes an ISR with a new member, the member is an assigned replica, and since
  it began to follow in this leader epoch its log has reached (a) the leader's high watermark and (b) the offset at
  which the leader's epoch began; (c) what it then truncated below these, because the leader's log has other records
  there, does not count. The log ends are those that the replica traced itself.
  Smallest breaks: leader 1 has high watermark 5 and proposes broker 2, (a) whose log never went beyond 4; (c) whose log
  ends at 5, and which in the same leader epoch truncates to 4.

Why (b): a new leader's high watermark may lag behind what its predecessors committed; the start of its epoch does not
(KAFKA-7128). A replica that joined below it could be elected without committed records.

Why (c): in one leader epoch a follower truncates only where the leader answers that the logs part (a diverging epoch in
the answer to a fetch, or the answer to OffsetForLeaderEpoch), and the leader's log only grows. So the leader answers
each fetch from behind that point with a diverging epoch, and such a fetch proves nothing (KAFKA-13141): what the
follower had reached before, it had reached with records that are not the leader's.

The idea: a replica fetches in a leader epoch only after it has traced that it follows in this epoch, and a fetch states
the end of its log. So the highest end traced between that event and the proposal is at least what any fetch may have
stated, and an end below the bound is certain. Between two rare events of a partition only the highest end and the last
high watermark of each replica count: ``reduce`` keeps those rows alone. A truncation that lowers the end of the log
takes back the ends that the same process reached before in that leader epoch, also those with which an earlier proposal
of this leader was justified.

What a correct cluster does and is not convicted for: the member fetches, and is truncated in a later leader epoch,
killed or loses its log before the leader handles the fetch, because its highest end counts, not its last; the member is
truncated in the same leader epoch, because the leader's process has ended meanwhile, and its next one has lost what was
not synced; the member gives up a log that ends
before the leader's begins; a deposed leader continues, and is judged by its own high watermark and epoch.

Limits: a proposed member that traced nothing at all, such as a broker of Apache Kafka, is ``unknown``.
Source: Partition.isFollowerInSync, Partition.canAddReplicaToIsr; KAFKA-7128, KAFKA-13141.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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

_FREQUENT: Final = (
    *(LOG_END_KINDS - {Kind.TRUNCATE, Kind.LOG_LOADED}),
    Kind.HIGH_WATERMARK,
)
Process = tuple[str, int | None]
"""A broker's process: its name and its incarnation."""


@dataclass(slots=True)
class Leadership:
    """One leader epoch of one process."""

    began: Row
    """The first report that it leads in this epoch."""
    mark: Row
    """The last report of its high watermark."""


class Bound(NamedTuple):
    """How far a member's log has to reach, the event that says so, and what it is."""

    offset: int
    row: int
    words: str


@dataclass(slots=True)
class Joined:
    """A proposed member that had reached what it has to, as far as was known then."""

    claim: str
    row: int
    """The row of the proposal."""
    leader: Process
    bound: Bound
    proofs: dict[int, Row]
    """The reports that its log had reached the bound, by the number of the log."""


@dataclass(slots=True)
class Member:
    """What is known of one replica's logs up to some event."""

    log: int = 0
    """The number of its present log: each time that a log is opened it is another one."""
    reached: dict[int, dict[int, Row]] = field(default_factory=dict)
    """By leader epoch and log: the report of the highest end since it first followed in this epoch, or since it was
    truncated in it."""
    joined: dict[int, list[Joined]] = field(default_factory=dict)
    """By leader epoch."""

    def reports(self, reported: Row) -> None:
        """Take in a report of the end of its log."""
        for by_log in self.reached.values():
            if self.log in by_log and _end(by_log[self.log]) < _end(reported):
                by_log[self.log] = reported

    def follows(self, reported: Row) -> None:
        """Take in the report that it follows in a leader epoch."""
        epoch = reported[1].leader_epoch
        if epoch is not None:
            self.reached.setdefault(epoch, {}).setdefault(self.log, reported)

    def truncates(self, reported: Row) -> list[tuple[Joined, Row]]:
        """Take back what a truncation shows not to be the leader's; return the proposals that relied on it alone, each
        with the report that it relied on."""
        epoch = reported[1].leader_epoch
        by_log = {} if epoch is None else self.reached.get(epoch, {})
        if epoch is None or self.log not in by_log or _end(by_log[self.log]) <= _end(reported):
            return []
        by_log[self.log] = reported
        relied = []
        for joined in self.joined.get(epoch, []):
            proof = joined.proofs.get(self.log)
            if proof is not None and _end(reported) < joined.bound.offset:
                del joined.proofs[self.log]
                relied += [] if joined.proofs else [(joined, proof)]
        return relied


@dataclass(slots=True)
class Replicas:
    """What is known of one partition's replicas up to some event."""

    leaderships: dict[Process, Leadership] = field(default_factory=dict)
    leaders: dict[int, Process] = field(default_factory=dict)
    """By leader epoch: the process that last began to lead in it."""
    members: dict[int, Member] = field(default_factory=dict)


class IsrJoins(EventListCheck):
    kinds = frozenset(
        {
            *_FREQUENT,
            Kind.TRUNCATE,
            Kind.LOG_LOADED,
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
                findings += _take_in(replicas, (row, event))
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


def _take_in(replicas: Replicas, reported: Row) -> Iterator[Finding]:
    _, event = reported
    process = (event.process, event.incarnation)
    if event.kind == Kind.BECOME_LEADER:
        known = replicas.leaderships.get(process)
        if known is None or known.began[1].leader_epoch != event.leader_epoch:
            replicas.leaderships[process] = Leadership(reported, reported)
        if event.leader_epoch is not None:
            replicas.leaders[event.leader_epoch] = process
    elif event.kind == Kind.HIGH_WATERMARK:
        if process in replicas.leaderships:
            replicas.leaderships[process].mark = reported
    elif event.node is not None:
        member = replicas.members.setdefault(event.node, Member())
        member.log += event.kind == Kind.LOG_LOADED
        if event.kind == Kind.TRUNCATE:
            yield from _refuted(replicas, member, reported)
        member.reports(reported)
        if event.kind == Kind.BECOME_FOLLOWER:
            member.follows(reported)


def _refuted(replicas: Replicas, member: Member, truncation: Row) -> Iterator[Finding]:
    """The proposals of a leader in office that a truncation in its leader epoch refutes."""
    row, event = truncation
    for joined, proof in member.truncates(truncation):
        # A later process of the leader may have lost what it had, and then its followers truncate that.
        if replicas.leaders.get(event.leader_epoch or 0) == joined.leader:
            sentence = (
                f"{joined.claim}: {joined.bound.words} {joined.bound.offset}, and the broker's log had reached "
                f"{_end(proof)}, with other records than the leader's: in that leader epoch the broker truncated it to "
                f"{_end(truncation)}."
            )
            tp = tp_name(event.topic, event.partition)
            rows = (*sorted((proof[0], joined.bound.row)), joined.row, row)
            yield finding(ISR_JOIN_CAUGHT_UP.name, tp, sentence, *rows)


def _end(reported: Row) -> int:
    end = reported[1].log_end_offset
    return -1 if end is None else end


def _judged(
    replicas: Replicas, proposed: Row, member: int, tracing: frozenset[int | None]
) -> Iterator[Finding]:
    row, event = proposed
    leadership = replicas.leaderships.get((event.process, event.incarnation))
    if leadership is None or leadership.began[1].leader_epoch != event.leader_epoch:
        return
    name, tp = ISR_JOIN_CAUGHT_UP.name, tp_name(event.topic, event.partition)
    claim = f"Leader {event.node} of {tp} proposed broker {member} for the ISR in leader epoch {event.leader_epoch}"
    began_row, began = leadership.began
    known = replicas.members.get(member, Member())
    reached = known.reached.get(event.leader_epoch or 0, {})
    if began.replicas and member not in began.replicas:
        sentence = f"{claim}, and the replicas are {began.replicas}."
        yield finding(name, tp, sentence, began_row, row)
    elif member not in tracing:
        sentence = f"{claim}, and the broker recorded nothing about its log."
        yield finding(name, tp, sentence, row, verdict=Verdict.UNKNOWN)
    elif not reached:
        sentence = f"{claim}, in which that broker had not begun to follow."
        yield finding(name, tp, sentence, began_row, row)
    else:
        bound, highest = _bound(leadership), max(reached.values(), key=_end)
        proofs = {log: report for log, report in reached.items() if _end(report) >= bound.offset}
        if proofs:
            joined = Joined(claim, row, (event.process, event.incarnation), bound, proofs)
            known.joined.setdefault(event.leader_epoch or 0, []).append(joined)
            return
        sentence = (
            f"{claim}: {bound.words} {bound.offset}, and the broker's log had reached "
            f"{_end(highest)} at most."
        )
        yield finding(name, tp, sentence, *sorted((highest[0], bound.row)), row)


def _bound(leadership: Leadership) -> Bound:
    """How far the log of a replica that joins has to reach."""
    (began_row, began), (mark_row, mark) = leadership.began, leadership.mark
    bounds = (
        Bound(mark.high_watermark or 0, mark_row, "its high watermark was"),
        Bound(began.log_end_offset or 0, began_row, "its epoch began at"),
    )
    return max(bounds, key=lambda bound: bound.offset)


ISR_JOIN_CAUGHT_UP: Final = Property(
    name="isr-join-caught-up",
    promise="A replica joins the ISR only when it agrees with the leader up to high watermark and start of the epoch.",
    unit="terms of leaders and proposed members",
    unknown="No broker became leader, or a proposed member traced nothing at all.",
    source="Partition.isFollowerInSync; KAFKA-7128, KAFKA-13141.",
    check=IsrJoins,
    decided_from=frozenset({EventSource.TRACES}),
    reason=explain.isr_join_caught_up,
    breaks=breaks.ISR_JOIN_CAUGHT_UP,
)
