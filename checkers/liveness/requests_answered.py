"""Brokers answer the requests of clients, if nothing keeps them from it.

* **requests-answered**: no operation of a client ends for want of an answer while no fault is in force. That is, no
  request that reached a connection waits for an answer for a second or longer
  (a) which the broker could give alone: a read, or a question about offsets, epochs and metadata;
  (b) which needs other brokers, from the start of the load to the first fault, and after the time that a recovery takes
  at most (``recovery_bound``) since the last one.
  Smallest breaks: (a) a poll is sent when no fault is in force, and the client gives up 1,500 ms later, still without a
  fault; (b) the same for a send before the first fault.

Why the bound holds: a consumer asks the broker to wait for 100 ms at most (``poll_max_wait_ms``), and other reads wait
for nothing. What waits for other brokers (``acks=all``, offset commits, the work of administrators) waits for members
of an ISR and for the controller. At rest each of them answers at once. An answer may be an error: that answers the
request, too.

What a correct cluster does and is not convicted for: a request that was under way when a fault began or ended; a send
just after a fault, whose follower does not fetch yet: broker and client wait for equally long, and the client may
give up first; partitions that an administrator adds to a topic while another one deletes it: the broker waits for their
leaders until the time of the request has passed (``DelayedCreatePartitions``, and ``DelayedDeleteRecords`` for the
followers); a client that was paused; a connection that could not be made. What the machine may explain is
``unknown`` in (a). In (b) it proves nothing: the broker has at least as long for its answer as the client waits. Where
work takes time, the client may give up before the answer is due.

Limits: joins of groups, elections, and the creation and deletion of topics, partitions and records are not judged:
their answers wait for what others do. Clients give up after ``operation_timeout_ms``; where that is less than a second,
nothing is judged. Requests between brokers are not recorded. Where the history does not state every time-out, (b) is
judged before the first fault.
Source: KafkaApis, DelayedOperationPurgatory (every delayed operation expires); KAFKA-8334.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.breaks import requests_answered as breaks
from nemesis.checkers.explain import requests_answered as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import client_faults, unexplained
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.checkers.liveness.recovery_bound import bound_ms
from nemesis.history.events import NO_ANSWER, Event, Kind
from nemesis.history.sources import EventSource

ALONE: Final = frozenset(
    {
        *("poll", "earliest-offset", "latest-offset", "offset-by-time", "epoch-end"),
        *("metadata", "log-start", "fetch-offset", "fetch-stable-offset", "open-transaction"),
    }
)
"""What a broker answers without another one."""
WAITING: Final = frozenset(
    {
        *("join-group", "sync-group"),
        *("create-topic", "create-partitions", "delete-topic", "elect-leaders", "delete-records"),
    }
)
"""Their answers wait for other members of the group, or for an effect that another administrator may undo."""
WAIT_MS: Final = 1_000
_MS: Final = 1_000_000
_FOREVER_NS: Final = 2**63 - 1
_COMPLETIONS: Final = frozenset({Kind.OK, Kind.FAIL, Kind.INFO})
_COLUMNS: Final = ("f", "op", "error", "topic", "partition", "targets", *unexplained.COLUMNS)


@dataclass(slots=True)
class Summary:
    """What consecutive rows hold."""

    completed: int = 0
    rows: list[Row] = field(default_factory=list)
    """The completions without an answer, and the rows of ``unexplained``."""


class RequestsAnswered(Fold[Summary]):
    kinds = frozenset({*_COMPLETIONS, *unexplained.KINDS})
    columns = tuple(dict.fromkeys((*_COLUMNS, *client_faults.COLUMNS)))

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (REQUESTS_ANSWERED,)

    def reduce(self, segment: Segment) -> Summary:
        completions = segment.only(_COMPLETIONS)
        unanswered = completions
        if len(completions):
            unanswered = completions.where(completions.is_word("error", {NO_ANSWER}))
        rows = [*unanswered.events(*self.columns)]
        rows += segment.only(unexplained.KINDS).events(*self.columns)
        return Summary(len(completions), rows)

    def combine(self, a: Summary, b: Summary) -> Summary:
        return Summary(a.completed + b.completed, a.rows + b.rows)

    def finish(self, summary: Summary) -> Results:
        others = [item for item in summary.rows if item[1].kind not in _COMPLETIONS]
        waited = [item for item in summary.rows if item[1].kind in _COMPLETIONS]
        findings = list(_findings(others, waited))
        return conclude(REQUESTS_ANSWERED, checked=summary.completed, findings=findings)


def _findings(rows: Sequence[Row], unanswered: Sequence[Row]) -> Iterator[Finding]:
    windows = unexplained.without_faults(rows, until="end")
    struck = StruckClients(rows)
    bound = bound_ms(rows)
    invoked = [event.time for _, event in rows if event.kind == Kind.FAULT_INVOKE]
    first_fault = min(invoked, default=_FOREVER_NS)
    for row, event in unanswered:
        ms = event.duration_ms or 0
        sent = event.time - ms * _MS
        if event.f in WAITING or ms < WAIT_MS or struck.is_struck(event.process, sent, event.time):
            continue
        since = next(
            (start for start, stop in windows if start <= sent and event.time <= stop), None
        )
        if since is None:
            continue
        is_recovered = bound is not None and sent - since >= bound * _MS
        if event.f in ALONE or event.time <= first_fault or is_recovered:
            # To answer takes no time of its own: the machine explains the wait if it was busy for most of it.
            excuse = unexplained.excuse(rows, sent, event.time, ms - WAIT_MS // 2)
            if excuse is None or event.f in ALONE:
                yield _unanswered(row, event, ms, excuse)


def _unanswered(row: int, event: Event, ms: int, excuse: str | None) -> Finding:
    name = event.process if event.topic is None else f"{event.topic}-{event.partition}"
    sentence = f"{event.process} waited {ms:,} ms for the answer to its {event.f}, without a fault."
    return finding(
        REQUESTS_ANSWERED.name,
        name,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        row,
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


REQUESTS_ANSWERED: Final = Property(
    name="requests-answered",
    promise="Brokers answer each request of a client, if no fault keeps them from it.",
    unit="operations of clients",
    unknown="No operation of a client was completed, or the machine was slow.",
    source="KafkaApis, DelayedOperationPurgatory; KAFKA-8334.",
    check=RequestsAnswered,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.FAULTS, EventSource.HARNESS}),
    recorded_since=14,
    reason=explain.requests_answered,
    breaks=breaks.REQUESTS_ANSWERED,
)
