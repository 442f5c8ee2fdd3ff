"""The first and the last offset that clients see never go back.

* **client-offsets-grow**: what ListOffsets answers is bounded from below:
  (a) the latest offset is not below the end that the leader's log had when its leadership began: a leader answers only
  when its high watermark has reached the start of its epoch (KIP-207);
  (b) of two queries, the second of which was sent after the first was answered, the second answer is not smaller: for
  the latest offset if one leadership of one process answered both, for the earliest offset if the same broker answered
  both, and its log was not opened, moved or cut meanwhile.
  Smallest breaks: (a) leader 2 begins its epoch with a log that ends at 5, and answers 4; (b) leader 1 answers 5, then
  4; broker 1 answers that the log starts at 3, then at 2.

Why this keeps what clients see from going back: an answer is a high watermark, so what lies below it is committed, and
every later leader has it in its log when its leadership begins (``leader-completeness``). With (a) it answers no less.

The idea: an answer does not name the leadership in which it was given, but the broker's own trace does. It is one of
those that the broker had between the query and the answer. If there are several, the shortest log of them bounds it.

Why time order may be trusted here: a broker traces a leadership before it answers in it, and a client reads the clock
before it sends and after it has the answer.

What a correct cluster does and is not convicted for: a deposed leader answers late, and less than its successor; after
an unclean election or a power cut the new leader's log ends below what was answered, and truncation follows; a new
leader starts its log lower than its predecessor; a broker starts its log lower after a crash; a topic that was deleted
and created again begins at 0, though the client asks by the same name; a leader is named again in its epoch, when its
log has grown; a query fails, or its answer is lost. No answer is compared with one of another leadership.

Limits: that a leader lacks what was answered before its election is the matter of ``leader-completeness``. Brokers
without traces are not judged. Queries are of isolation level ``read_uncommitted``: a last stable offset may lie below
the start of the epoch. High watermarks in answers to fetches are not judged: polls do not record who answered, and
there they may go back (KIP-207 changed ListOffsets only).
Source: KIP-207 (KAFKA-2334); Partition.fetchOffsetForTimestamp.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.administered import Administered
from nemesis.checkers.breaks import client_offsets as breaks
from nemesis.checkers.explain import client_offsets as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

EARLIEST: Final = "earliest-offset"
LATEST: Final = "latest-offset"
_OPENED: Final = frozenset(
    {Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED, Kind.TRUNCATE, Kind.REPLICA_STOPPED}
)
"""After these a log may start anywhere."""
_ROLES: Final = frozenset({Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED})

TopicPartition = tuple[str, int]


class Answer(NamedTuple):
    """An answer; ``turn`` counts the events of the broker's replica up to it."""

    offset: int
    row: int
    turn: int


class Query(NamedTuple):
    """What was known when a query was sent."""

    turn: int
    roles: int
    """The number of roles that the broker had taken."""
    openings: int


class Bound(NamedTuple):
    """An event that says why an answer must not be smaller than this offset."""

    offset: int
    row: int
    reason: str


@dataclass(slots=True)
class Replica:
    """What is known of a replica up to some event."""

    roles: list[Row] = field(default_factory=list)
    openings: int = 0
    turn: int = 0
    judged: int = 0
    """The number of answers that a trace of the broker decides."""
    queries: dict[tuple[str, int | None], Query] = field(default_factory=dict)
    answers: dict[tuple[int, ...], list[Answer]] = field(default_factory=lambda: defaultdict(list))
    """By what answered, sorted by offset."""

    def take_in(self, row: int, event: Event) -> Bound | None:
        """Take in an event; return the bound that an answer falls below."""
        self.turn += 1
        if event.kind in _ROLES and not self._leads_on(event):
            self.roles.append((row, event))
        if event.kind in _OPENED:
            self.openings += 1
        elif event.kind == Kind.INVOKE:
            query = Query(self.turn, len(self.roles), self.openings)
            self.queries[event.process, event.op] = query
        elif event.kind == Kind.OK and event.offset is not None:
            query_sent = self.queries.pop((event.process, event.op), None)
            answer = Answer(event.offset, row, self.turn)
            if query_sent is not None and event.f == LATEST:
                return self._latest(query_sent, answer)
            if query_sent is not None and self._is_traced and query_sent.openings == self.openings:
                self.judged += 1
                return self._earlier((self.openings,), query_sent, answer)
        return None

    @property
    def _is_traced(self) -> bool:
        """Whether the broker traces: without a trace a log may have been opened between two answers."""
        return bool(self.roles) or self.openings > 0

    def _leads_on(self, event: Event) -> bool:
        """Whether a leader is named again in its epoch: the epoch began before, perhaps with a shorter log."""
        return bool(self.roles) and _leadership(self.roles[-1][1]) == _leadership(event) is not None

    def _latest(self, query: Query, answer: Answer) -> Bound | None:
        # The broker answered in the role that it had when it was asked, or in one that it took before the answer came.
        candidates = self.roles[max(0, query.roles - 1) :]
        led = [(row, role) for row, role in candidates if role.kind == Kind.BECOME_LEADER]
        if not led:
            return None
        self.judged += 1
        row, shortest = min(led, key=lambda item: item[1].log_end_offset or 0)
        start = shortest.log_end_offset or 0
        if answer.offset < start:
            return Bound(start, row, f"its log ended at {start} when its leadership began")
        if len(led) > 1 or query.openings != self.openings:
            return None
        return self._earlier((self.openings, row), query, answer)

    def _earlier(self, source: tuple[int, ...], query: Query, answer: Answer) -> Bound | None:
        """The highest answer of this source that came before the query was sent, if it is higher than this one."""
        answers = self.answers[source]
        above = answers[bisect_right(answers, answer.offset, key=lambda other: other.offset) :]
        insort(answers, answer)
        higher = max((other for other in above if other.turn < query.turn), default=None)
        if higher is None:
            return None
        return Bound(higher.offset, higher.row, f"it had answered {higher.offset} before")


def _leadership(event: Event) -> tuple[str | None, int | None, int | None] | None:
    if event.kind != Kind.BECOME_LEADER:
        return None
    return event.topic_id, event.incarnation, event.leader_epoch


class ClientOffsets(Administered):
    operations = frozenset({EARLIEST, LATEST})
    kinds = frozenset({*_ROLES, *_OPENED, Kind.INVOKE, Kind.OK})
    columns = (
        *("topic", "topic_id", "partition", "node", "incarnation", "leader_epoch"),
        *("log_end_offset", "f", "op", "offset"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CLIENT_OFFSETS_GROW,)

    def judge(self, rows: list[Row]) -> Results:
        replicas: dict[tuple[TopicPartition, int], Replica] = defaultdict(Replica)
        findings: list[Finding] = []
        leaderships = 0
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[0])):
            if event.topic is None or event.partition is None or event.node is None:
                continue
            leaderships += event.kind == Kind.BECOME_LEADER
            replica = replicas[(event.topic, event.partition), event.node]
            bound = replica.take_in(row, event)
            if bound is not None:
                findings.append(_fallen(row, event, bound))
        judged = sum(replica.judged for replica in replicas.values())
        return conclude(
            CLIENT_OFFSETS_GROW,
            checked=leaderships + judged,
            findings=findings,
            numbers={"answers": float(judged)},
        )


def _fallen(row: int, event: Event, bound: Bound) -> Finding:
    tp = tp_name(event.topic, event.partition)
    sentence = f"Broker {event.node} answered that the {event.f} of {tp} is {event.offset}, but {bound.reason}."
    return finding(CLIENT_OFFSETS_GROW.name, tp, sentence, bound.row, row)


CLIENT_OFFSETS_GROW: Final = Property(
    name="client-offsets-grow",
    promise="What ListOffsets answers as the first and the last offset of a partition never goes back.",
    unit="terms of leaders and answers",
    unknown="No broker traced that it became leader, and no answer of a broker that traces was recorded.",
    source="KIP-207 (KAFKA-2334).",
    check=ClientOffsets,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.TRACES}),
    reason=explain.client_offsets_grow,
    breaks=breaks.CLIENT_OFFSETS_GROW,
)
