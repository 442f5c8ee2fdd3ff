"""Answers to the fetches of clients name the partitions that were asked for.

* **fetches-answered**: a client states which partitions it fetches, in full or in a fetch session (KIP-227):
  (a) the answer to a full request names exactly the partitions of the request;
  (b) every partition in the answer to an incremental request belongs to the session: the client has named it, in the
  full request that began the session or later, and has not removed it since;
  (c) a partition that joins a session is in the answer to the request that names it, and a partition that had an error
  in the last answer of the session is in the next one: an error is reported as long as it lasts, and so is its end. Of
  any other partition of the session an answer may say nothing.
  Smallest breaks: (a) a full request names t-0, and the answer names t-1 too, or nothing; (b) a client that fetches t-0
  and t-1 removes t-1, and the answer names it; (c) a client adds t-1, and the answer leaves it out; an answer has an
  error of t-0, and the next one leaves it out.

The idea: a session is what the requests of its client make it. Its partitions are followed from the full request on,
request by request, as the client sent them. No broker is believed about them.

What a correct cluster does and is not convicted for: it refuses a fetch as a whole, because it has no such session (it
was evicted, or the broker has started again), or expects another epoch: then nothing is known of the session. It opens
no session when it has no room. It answers each partition of a full request with an error: that names it. It throttles a
client, and answers at once and without partitions (KIP-219). A topic that was deleted and created again has another id,
and is another partition here; the session keeps the former one until the client removes it.

A request whose answer is lost may have changed the session, or not. Incremental requests are judged only if the answers
to all earlier requests of the session are recorded, epoch by epoch; so a client that reconnects is judged again from
its next full request on. A request that names and removes a partition at once may leave it in the session or not.

Limits: what an answer says of a partition that it names is the matter of other properties. That a session reports
what has changed is the matter of ``offsets-at-rest`` and ``poll-skip``. Fetches of followers are not recorded.
Source: KIP-227; FetchSession and FetchContext of Kafka, FetchSessionHandler of its clients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import fetches_answered as breaks
from nemesis.checkers.explain import fetches_answered as explain
from nemesis.checkers.framework.event_list import Row, succeeded
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_POLL: Final = "poll"
_COLUMNS: Final = (
    *("node", "fetch_session", "fetch_epoch", "asked", "forgotten", "answered", "failed"),
    *("error", "duration_ms"),
)


@dataclass(slots=True)
class Summary:
    """What consecutive rows hold."""

    polls: int = 0
    fetches: list[Row] = field(default_factory=list)
    topics: dict[str, str] = field(default_factory=dict)
    """The names of topics by their ids, as polls have them."""


@dataclass(frozen=True, slots=True)
class Session:
    """The partitions that a client fetches from one broker, after some request."""

    partitions: frozenset[str]
    epoch: int
    """Of the last answered request."""
    session_id: int | None
    """None before the first incremental request, which is the first to state it."""
    begun: int
    """The row of the full request."""
    removed: dict[str, int]
    """By partition the row of the request that removed it."""
    failed: dict[str, int]
    """By partition the row of the last answer, if it has an error there."""

    def is_continued_by(self, event: Event) -> bool:
        """Whether the request is the next one of the session."""
        is_same = self.session_id in (None, event.fetch_session)
        return is_same and event.fetch_epoch == self.epoch + 1

    def after(self, row: int, event: Event) -> Session:
        """Return the session that the request leaves."""
        asked, forgotten = event.asked or [], event.forgotten or []
        removed = {**self.removed, **dict.fromkeys(forgotten, row)}
        return Session(
            self.partitions.difference(forgotten).union(asked),
            self.epoch + 1,
            event.fetch_session,
            self.begun,
            {name: where for name, where in removed.items() if name not in asked},
            dict.fromkeys(event.failed or [], row),
        )


class FetchesAnswered(Fold[Summary]):
    kinds = frozenset({Kind.OK, Kind.FETCH_RECEIVED})
    columns = ("f", "topic", "topic_id", *_COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (FETCHES_ANSWERED,)

    def reduce(self, segment: Segment) -> Summary:
        answers = segment.only({Kind.OK})
        polls = answers.where(answers.is_word("f", {_POLL})) if len(answers) else answers
        names = [key for key, _ in polls.by("topic_id", "topic")] if len(polls) else []
        received = segment.only({Kind.FETCH_RECEIVED})
        return Summary(
            len(polls),
            list(received.events(*_COLUMNS)),
            {topic_id: topic for topic_id, topic in names if topic_id is not None},
        )

    def combine(self, a: Summary, b: Summary) -> Summary:
        return Summary(a.polls + b.polls, a.fetches + b.fetches, {**a.topics, **b.topics})

    def finish(self, summary: Summary) -> Results:
        walk = _Walk(summary.topics)
        findings = [item for row, event in summary.fetches for item in walk.judge(row, event)]
        return conclude(FETCHES_ANSWERED, checked=summary.polls + walk.judged, findings=findings)


class _Walk:
    """Follows the sessions of all clients, fetch by fetch."""

    def __init__(self, topics: dict[str, str]) -> None:
        self.judged = 0
        self._topics = topics
        self._sessions: dict[tuple[str, int | None], Session] = {}
        """By consumer and broker."""

    def judge(self, row: int, event: Event) -> Iterator[Finding]:
        key = (_consumer(event), event.node)
        session = self._sessions.pop(key, None)
        if not succeeded(event):
            return
        if (event.fetch_epoch or 0) <= 0:
            failed = dict.fromkeys(event.failed or [], row)
            self._sessions[key] = Session(frozenset(event.asked or ()), 0, None, row, {}, failed)
            self.judged += 1
            yield from self._judge_full(row, event)
        elif session is not None and session.is_continued_by(event):
            self._sessions[key] = after = session.after(row, event)
            self.judged += 1
            yield from self._judge_incremental(row, event, session, after)

    def _judge_full(self, row: int, event: Event) -> Iterator[Finding]:
        asked, answered = frozenset(event.asked or ()), frozenset(event.answered or ())
        fetch = f"a full fetch of {_consumer(event)}"
        for name in sorted(answered - asked):
            tp = self._tp(name)
            sentence = (
                f"Broker {event.node} answered {fetch} with {tp}, which the request does not name."
            )
            yield finding(FETCHES_ANSWERED.name, tp, sentence, row)
        for name in sorted(asked - answered) if not _is_throttled(event) else ():
            yield self._left_out(name, f"{fetch}, which names it", row)

    def _judge_incremental(
        self, row: int, event: Event, before: Session, after: Session
    ) -> Iterator[Finding]:
        consumer = _consumer(event)
        fetch = f"fetch {event.fetch_epoch} of {consumer} in its session {event.fetch_session}"
        answered = frozenset(event.answered or ())
        for name in sorted(answered - after.partitions):
            tp = self._tp(name)
            removed = after.removed.get(name)
            why = "has removed from the session" if removed is not None else "has not asked for"
            sentence = f"Broker {event.node} answered {fetch} with {tp}, which {consumer} {why}."
            since = after.begun if removed is None else removed
            yield finding(FETCHES_ANSWERED.name, tp, sentence, *{since: None, row: None})
        if _is_throttled(event):
            return
        for name in sorted(after.partitions - before.partitions - answered):
            yield self._left_out(name, f"{fetch}, which adds it to the session", after.begun, row)
        for name in sorted((after.partitions & before.failed.keys()) - answered):
            why = f"{fetch}, and the answer before has an error of it"
            yield self._left_out(name, why, before.failed[name], row)

    def _left_out(self, name: str, fetch: str, *rows: int) -> Finding:
        tp = self._tp(name)
        sentence = f"{explain.LEFT_OUT} {tp}: it is the answer to {fetch}."
        return finding(FETCHES_ANSWERED.name, tp, sentence, *rows)

    def _tp(self, name: str) -> str:
        topic_id, _, partition = name.rpartition("-")
        return f"{self._topics.get(topic_id, topic_id)}-{partition}"


def _consumer(event: Event) -> str:
    """Return the consumer to which a process belongs: ``consumer-0.2`` polls for ``consumer-0``."""
    return event.process.partition(".")[0]


def _is_throttled(event: Event) -> bool:
    return (event.duration_ms or 0) > 0 and not event.answered


FETCHES_ANSWERED: Final = Property(
    name="fetches-answered",
    promise="Answers to fetches name the partitions that the client asks for, in a fetch session or in full.",
    unit="polls, and answers in fetch sessions",
    unknown="No client polled, and none kept a fetch session.",
    source="KIP-227, KIP-219; FetchSession, FetchContext, FetchSessionHandler.",
    check=FetchesAnswered,
    decided_from=frozenset({EventSource.CLIENTS}),
    recorded_since=11,
    reason=explain.fetches_answered,
    breaks=breaks.FETCHES_ANSWERED,
)
