"""What a leader says of where a leader epoch ends agrees with its log.

* **epoch-ends-answered**: OffsetForLeaderEpoch answers the largest leader epoch of the leader's log that is at most the
  requested one, and the offset at which the next larger one begins, or the end of the log. Judged are
  (a) the answers that clients record;
  (b) the truncations of followers: a follower truncates in a leader epoch to no more than what such an answer leaves:
  the end of that epoch in the leader's log, and in its own log the end of the largest epoch up to that one;
  (c) the moves of replicas: a log in another log directory knows the latest leader epoch that the replica had.
  Smallest breaks: the log of leader 1 has leader epoch 0 up to 4 and leader epoch 2 from there on, and ends at 6: it
  answers that leader epoch 1 ends at 4, that leader epoch 0 ends at 6, or that it knows no leader epoch 1;
  broker 2, whose log has leader epoch 0 up to 5, follows it and truncates to 5; broker 1 leads in leader epoch 3,
  appends nothing, moves its log to another directory, and knows leader epoch 2 as its latest.

Why the epoch matters, not only the offset: a follower that asks for an epoch that the leader never had must learn of
it. It then cuts what it has of all epochs above the answered one. If the requested epoch is answered instead, the
follower keeps records that the leader does not have, and the logs diverge for good (KIP-279, KAFKA-6361). A leader that
has lost its own epoch in a move (KAFKA-15608) answers as if it had never led in it.

The idea: where epochs begin follows from the traces of each replica (``lineage``). An answer is compared with what the
log of the broker was at each moment between the query and the answer while it led; a client reads the clock before
it sends and after it has the answer. A truncation is compared with the log of the leader as it is then: in its own
leader epoch a leader's log only grows, and the bound with it, so a correct earlier answer keeps to it, too. Between two
rare events of a partition only the first and the last append of each broker and leader epoch count: ``reduce`` keeps
those rows alone.

What a correct cluster does and is not convicted for: a broker leads in its own view, though it was deposed, and answers
from its own log; a leader knows its epoch before it has written anything; an epoch without records is forgotten when
the log is opened again; an epoch before the first one that is known is answered as requested; a follower truncates
more than it must (to its high watermark), or asks in several rounds; a leader that starts again in its leader epoch may
have lost what it had not synced, and a follower may still hold its earlier answer; a broker that is killed before it
has checkpointed a raised log start opens its log with the earlier start, and the epochs below the raised one are known
again if its epoch file or its batches have them.

Limits: where the events do not say what a log holds (see ``lineage``), nothing is judged; of a moved log, the earlier
epochs are not traced. A client names a topic, not
its id: if a broker has led several topics of one name, it may have answered for each. Answers to followers are not
traced; (b) sees what follows from them. Of a log whose start went back, an answer for an epoch below the first one that
is surely known may be any offset up to the start of that one: how much a recovery walks is not traced.
Source: KIP-101, KIP-279, KAFKA-6361; UnifiedLog.endOffsetForEpoch, LeaderEpochFileCache.endOffsetFor and
truncateFromStartAsyncFlush, LogSegment.recover.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nemesis.checkers.breaks import epoch_ends as breaks
from nemesis.checkers.explain import epoch_ends as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Numbers, Segment
from nemesis.checkers.replication.lineage import NO_EPOCH, EpochEnd, Lineage
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

QUERY: Final = "epoch-end"
_ENDED: Final = frozenset({Kind.FAIL, Kind.INFO})
_OPERATIONS: Final = frozenset({Kind.INVOKE, Kind.OK, *_ENDED})
_OF_REPLICAS: Final = frozenset(
    {
        *(Kind.APPEND, Kind.TRUNCATE, Kind.LOG_START_OFFSET, Kind.LOG_CLEANED),
        *(Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED),
        *(Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED),
    }
)
_BEFORE_AND_AFTER: Final = {Kind.INVOKE: 0, Kind.OK: 2}
"""At the same time, a query is sent before, and answered after what brokers do."""


@dataclass(slots=True)
class Replica:
    """What is known of a replica of one topic incarnation up to some event."""

    lineage: Lineage = field(default_factory=Lineage)
    led: Row | None = None
    """The event with which it began to lead in its present leader epoch; None if it does not lead."""
    incarnation: int | None = None
    terms: set[tuple[int | None, int | None]] = field(default_factory=set)
    """Leader epoch and incarnation of each of its terms as leader."""

    def take_in(self, reported: Row) -> None:
        event = reported[1]
        if event.incarnation != self.incarnation or event.kind in (
            Kind.BECOME_FOLLOWER,
            Kind.REPLICA_STOPPED,
        ):
            self.led = None
        self.incarnation = event.incarnation
        self.lineage.take_in(reported)
        is_new = self.led is None or self.led[1].leader_epoch != event.leader_epoch
        if event.kind == Kind.BECOME_LEADER and is_new:
            self.led = reported
            self.terms.add((event.leader_epoch, event.incarnation))

    def has_led_twice(self, leader_epoch: int | None) -> bool:
        """Return whether it has started again in a leader epoch in which it had led, perhaps with less."""
        return sum(epoch == leader_epoch for epoch, _ in self.terms) > 1


@dataclass(slots=True)
class Query:
    """A query that is not answered yet, and what a correct broker may answer."""

    asked: int
    possible: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The smallest and the largest offset, by leader epoch."""
    rows: set[int] = field(default_factory=set)
    """The events that show why."""
    is_decided: bool = True
    """False if the broker has led with a log of which not all is known."""

    def sees(self, replica: Replica) -> None:
        """Take in the log of a broker while the query is under way."""
        if replica.led is None:
            return
        lineage = replica.lineage
        if not lineage.is_known:
            self.is_decided = False
            return
        for epoch, (low, high) in lineage.possible_ends_of(self.asked).items():
            lowest, highest = self.possible.get(epoch, (low, high))
            self.possible[epoch] = (min(low, lowest), max(high, highest))
        self.rows |= {replica.led[0], *_rows_of(lineage, self.asked)}

    def allows(self, answer: EpochEnd) -> bool:
        if answer.epoch not in self.possible:
            return False
        low, high = self.possible[answer.epoch]
        return low <= answer.offset <= high


@dataclass(slots=True)
class Partition:
    """The replicas of the partitions of one name and number, and the queries of them."""

    replicas: dict[int, dict[str | None, Replica]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By broker and topic id."""
    queries: dict[tuple[str, int | None], tuple[int, Query]] = field(default_factory=dict)
    """The broker and the query, by operation."""

    def take_in(self, reported: Row) -> None:
        """Take in an event of a replica."""
        event = reported[1]
        node = -1 if event.node is None else event.node
        by_topic_id = self.replicas[node]
        if event.kind == Kind.REPLICA_STOPPED and event.step in ("deleting", "delete"):
            by_topic_id.pop(event.topic_id, None)
            return
        for other in by_topic_id.values():
            if other.incarnation != event.incarnation:
                other.led = None
        replica = by_topic_id.setdefault(event.topic_id, Replica())
        replica.take_in(reported)
        for asked_node, query in self.queries.values():
            if asked_node == node:
                query.sees(replica)

    def asks(self, event: Event) -> None:
        """Take in a query."""
        if event.node is not None and event.leader_epoch is not None:
            query = Query(event.leader_epoch)
            for replica in self.replicas[event.node].values():
                query.sees(replica)
            self.queries[event.process, event.op] = (event.node, query)

    def leader(self, topic_id: str | None, leader_epoch: int | None) -> Replica | None:
        """Return the replica that leads in this epoch, in its own view."""
        replicas = (by_topic_id.get(topic_id) for by_topic_id in self.replicas.values())
        return next(
            (
                replica
                for replica in replicas
                if replica is not None
                and replica.led is not None
                and replica.led[1].leader_epoch == leader_epoch
            ),
            None,
        )


class EpochEnds(EventListCheck):
    kinds = _OF_REPLICAS | _OPERATIONS
    columns = (
        *("topic", "topic_id", "partition", "node", "incarnation", "leader_epoch"),
        *("offset", "log_start_offset", "log_end_offset", "f", "op", "step"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (EPOCH_ENDS_ANSWERED,)

    def reduce(self, segment: Segment) -> list[Row]:
        of_replicas = segment.is_kind(*(self.kinds & _OF_REPLICAS))
        wanted = segment.where(of_replicas | segment.is_word("f", {QUERY}))
        rows: list[Row] = []
        for _, part in wanted.by("topic", "partition"):
            rows += part.take(_telling(part)).events(*self.columns)
        return rows

    def judge(self, rows: list[Row]) -> Results:
        by_name: dict[tuple[str, int], Partition] = defaultdict(Partition)
        findings: list[Finding] = []
        leaderships = answers = truncations = moves = 0
        for row, event in sorted(rows, key=_in_time):
            if event.topic is None or event.partition is None:
                continue
            partition = by_name[event.topic, event.partition]
            if event.kind == Kind.INVOKE:
                partition.asks(event)
            elif event.kind in _ENDED:
                partition.queries.pop((event.process, event.op), None)
            elif event.kind == Kind.OK:
                _, query = partition.queries.pop((event.process, event.op), (-1, Query(-1)))
                if query.possible and query.is_decided:
                    answers += 1
                    findings += _wrong_answer(query, (row, event))
            else:
                leaderships += event.kind == Kind.BECOME_LEADER
                if event.kind == Kind.TRUNCATE and (bound := _bound(partition, event)) is not None:
                    truncations += 1
                    findings += _kept_too_much(bound, (row, event))
                if event.kind == Kind.LOG_DIR_CHANGED:
                    moves += 1
                    findings += _lost_in_a_move(partition, (row, event))
                partition.take_in((row, event))
        return conclude(
            EPOCH_ENDS_ANSWERED,
            checked=leaderships + answers + truncations + moves,
            findings=findings,
            numbers={"answers": float(answers), "truncations": float(truncations)},
        )


def _in_time(reported: Row) -> tuple[int, int, int]:
    row, event = reported
    return event.time, _BEFORE_AND_AFTER.get(Kind(event.kind), 1), row


def _telling(part: Segment) -> Numbers:
    """The positions of the rows of one partition that count, in their order: of the appends between two other events,
    the first and the last of each topic id, broker and leader epoch.

    The partition is one of a name: a query may state the id of a topic that was deleted, and be answered for the next.
    """
    is_append = part.is_kind(Kind.APPEND)
    appends = np.flatnonzero(is_append)
    if not len(appends):
        return np.arange(len(part))
    keys = (
        np.cumsum(~is_append)[appends],
        part.codes("topic_id")[0][appends],
        part.numbers("node")[appends],
        part.numbers("leader_epoch")[appends],
    )
    ranked = np.lexsort((appends, *reversed(keys)))
    differs = np.zeros(len(appends) - 1, dtype=np.bool_)
    for key in keys:
        differs |= np.diff(key[ranked]) != 0
    edges = np.ones(len(appends) + 1, dtype=np.bool_)
    edges[1:-1] = differs
    kept = appends[ranked[edges[1:] | edges[:-1]]]
    return np.sort(np.concatenate([np.flatnonzero(~is_append), kept]))


def _rows_of(lineage: Lineage, asked: int) -> Iterator[int]:
    """The events that show where the answered epoch begins, and where the next one does."""
    position = lineage.after(asked)
    yield from (item.row for item in lineage.starts[max(0, position - 1) : position + 1])


def _wrong_answer(query: Query, answered: Row) -> Iterator[Finding]:
    row, event = answered
    answer = EpochEnd(
        *(-1 if value is None else value for value in (event.leader_epoch, event.offset))
    )
    if query.allows(answer):
        return
    tp = tp_name(event.topic, event.partition)
    correct = " or ".join(_in_words(epoch, *ends) for epoch, ends in query.possible.items())
    sentence = (
        f"Broker {event.node}, asked where leader epoch {query.asked} of {tp} ends, answered "
        f"{_in_words(answer.epoch, answer.offset, answer.offset)}; by its log it is {correct}."
    )
    yield finding(EPOCH_ENDS_ANSWERED.name, tp, sentence, *sorted({*query.rows, row}))


def _in_words(epoch: int, low: int, high: int) -> str:
    if epoch == NO_EPOCH.epoch:
        return "that it knows none"
    return f"leader epoch {epoch} up to {low}" + (f" to {high}" if low < high else "")


@dataclass(frozen=True, slots=True)
class Bound:
    """What a truncation leaves at most."""

    offset: int
    why: str
    rows: frozenset[int]


def _bound(partition: Partition, cut: Event) -> Bound | None:
    """Return to where a follower may truncate by the answer of its leader; None if the events do not decide that."""
    follower = partition.replicas[-1 if cut.node is None else cut.node].get(cut.topic_id)
    leader = partition.leader(cut.topic_id, cut.leader_epoch)
    if follower is None or leader is None or leader is follower or leader.led is None:
        return None
    if leader.has_led_twice(cut.leader_epoch):
        return None
    own, other = follower.lineage, leader.lineage
    is_given_up = (cut.log_end_offset or 0) > own.end  # the leader's log begins behind the end
    if not (own.is_known and other.is_known and own.starts) or cut.offset is None or is_given_up:
        return None
    latest = own.starts[-1].epoch
    end = other.end_of(latest)
    if end == NO_EPOCH:
        return None
    shared = own.end_of(end.epoch)
    why = f"leader {leader.led[1].node} has leader epoch {end.epoch} up to {end.offset}"
    offset = end.offset
    if shared != NO_EPOCH and shared.offset < offset:
        offset = shared.offset
        why += f", and broker {cut.node} leader epoch {shared.epoch} up to {shared.offset}"
    rows = {leader.led[0], *_rows_of(other, latest), *_rows_of(own, end.epoch)}
    return Bound(offset, why, frozenset(rows))


def _kept_too_much(bound: Bound, cut: Row) -> Iterator[Finding]:
    row, event = cut
    if (event.offset or 0) > bound.offset:
        tp = tp_name(event.topic, event.partition)
        sentence = (
            f"Broker {event.node} truncated its log of {tp} in leader epoch {event.leader_epoch} to {event.offset}, "
            f"though {bound.why}."
        )
        yield finding(EPOCH_ENDS_ANSWERED.name, tp, sentence, *sorted({*bound.rows, row}))


def _lost_in_a_move(partition: Partition, moved: Row) -> Iterator[Finding]:
    row, event = moved
    replica = partition.replicas[-1 if event.node is None else event.node].get(event.topic_id)
    if replica is None or event.leader_epoch is None or not replica.lineage.survives_move(event):
        return
    latest = replica.lineage.latest
    if latest is None or latest.epoch == event.leader_epoch:
        return
    tp = tp_name(event.topic, event.partition)
    known = "none" if event.leader_epoch < 0 else f"leader epoch {event.leader_epoch}"
    sentence = (
        f"Broker {event.node} moved its log of {tp} to another directory, and knows {known} as its latest; before the "
        f"move it was leader epoch {latest.epoch}, which begins at {latest.offset}."
    )
    yield finding(EPOCH_ENDS_ANSWERED.name, tp, sentence, *sorted({latest.row, row}))


EPOCH_ENDS_ANSWERED: Final = Property(
    name="epoch-ends-answered",
    promise="Leaders answer where leader epochs end as their logs have it; followers truncate by it; moves keep it.",
    unit="terms of leaders, answers, truncations and moves",
    unknown="No broker traced that it became leader.",
    source="KIP-101, KIP-279, KAFKA-6361, KAFKA-15608; UnifiedLog.endOffsetForEpoch.",
    check=EpochEnds,
    decided_from=frozenset({EventSource.TRACES}),
    completed_by=frozenset({EventSource.CLIENTS}),
    recorded_since=5,
    reason=explain.epoch_ends_answered,
    breaks=breaks.EPOCH_ENDS_ANSWERED,
)
