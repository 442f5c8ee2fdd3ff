"""A partition that no fault keeps from it takes records again within the time-outs of the configuration.

**late-recovery**: while no fault is in force, a partition to which clients send with acks=all acknowledges a record
within the bound of ``recovery_bound``. The time counts from the later one of the end of the last fault and the last
acknowledgement; for a partition that never acknowledged a record, from the first failure there at the earliest.
Smallest break: a fault ends; a client's send fails after the bound and, without any acknowledgement in between, the
same client's next send fails as well. The first failure gives the client the newest metadata, so the second one is the
cluster's. ``numbers`` holds the bound and the slowest recovery after a fault.

Any fault in force explains all, and so may a slow machine: ``unexplained`` says when. A fault that strikes a client
process explains only what that client says, until the bound has passed after it.

What a correct cluster does and is not convicted for: a send that was under way when the bound passed; records that a
broker refuses for what they are (only failures that mean *not available* count); a topic that is deleted at some time;
partitions to which no client sends. What the machine may explain is ``unknown``.

Limit: a partition without any leader known to clients is tried rarely, or not at all; ``convergence`` judges the end.
Limit: the workload ends soon after the last fault, so a run whose faults follow each other closely shows late
recoveries only as far as the pauses between faults exceed the bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.breaks import late_recovery as breaks
from nemesis.checkers.causes import find
from nemesis.checkers.explain import ends
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Fold, Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.liveness import attribution, unexplained
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.checkers.liveness.recovery_bound import bound_ms
from nemesis.checkers.liveness.time_spans import NONE, Spans, union
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

_COMPLETIONS: Final = (Kind.OK, Kind.FAIL, Kind.INFO)
_ALL_REPLICAS: Final = -1
_DELETIONS: Final = "/admin/delete_topics/"
_MS: Final = 1_000_000
_WITHIN: Final = 100 * _MS - 1
"""Acknowledgements that are this close count as one span."""
_UNAVAILABLE: Final = frozenset(
    {
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "REQUEST_TIMED_OUT",
        "KAFKA_STORAGE_ERROR",
        "CLIENT_TIMED_OUT",
        "CONNECT_TIMED_OUT",
        "CONNECTION_REFUSED",
        "DISCONNECTED",
        "LEADER_UNKNOWN",
        "BROKER_UNKNOWN",
    }
)
"""Errors that say that the partition is not available, and nothing about the record; details follow after a space."""

TopicPartition = tuple[str, int]


class Failure(NamedTuple):
    """A send that failed."""

    time: int
    row: int
    process: str
    error: str


class Late(NamedTuple):
    """A client was refused at least twice after the bound: its first failure, and the last of all failures."""

    since: int
    first: Failure
    last: Failure


@dataclass(slots=True)
class Answers:
    """What clients heard from one partition."""

    acknowledged: Spans = field(default_factory=NONE.copy)
    failures: list[Failure] = field(default_factory=list)

    def last_acknowledged(self, time: int) -> int | None:
        """Return when a record was last acknowledged up to this time; None if none was."""
        index = int(np.searchsorted(self.acknowledged[:, 0], time, side="right")) - 1
        return None if index < 0 else min(int(self.acknowledged[index, 1]), time)

    def first_acknowledged(self, start: int, stop: int) -> int | None:
        """Return when a record was first acknowledged in this window; None if none was."""
        index = int(np.searchsorted(self.acknowledged[:, 1], start, side="left"))
        if index == len(self.acknowledged):
            return None
        time = max(int(self.acknowledged[index, 0]), start)
        return time if time <= stop else None

    def late(self, start: int, stop: int, bound_ns: int) -> list[Late]:
        """Return the late recoveries in a window without faults, each with the last failure that it contains."""
        known_from = min((failure.time for failure in self.failures), default=0)
        since, refused = -1, dict[str, Failure]()
        late: dict[int, Late] = {}
        for failure in self.failures:
            if not start <= failure.time <= stop:
                continue
            acknowledged = self.last_acknowledged(failure.time)
            latest = max(start, known_from if acknowledged is None else acknowledged)
            if latest != since:
                since, refused = latest, {}
            if failure.time - since < bound_ns:
                continue
            first = refused.setdefault(failure.process, failure)
            if first is not failure:
                late[since] = Late(since, first, failure)
        return list(late.values())


@dataclass(slots=True)
class Summary:
    rows: list[Row] = field(default_factory=list)
    """All events but the clients'."""
    answers: dict[TopicPartition, Answers] = field(default_factory=lambda: defaultdict(Answers))


class LateRecovery(Fold[Summary]):
    kinds = frozenset(
        {
            *_COMPLETIONS,
            *attribution.KINDS,
            Kind.PHASE,
            Kind.HARNESS_LAG,
            Kind.MACHINE_LOAD,
            Kind.TIMEOUT_SETTING,
            Kind.ZNODE,
        }
    )
    columns = (
        *("fault", "fault_id", "effect", "phase", "duration_ms", "setting", "path"),
        *("f", "acks", "topic", "partition", "error", "targets"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LATE_RECOVERY,)

    def reduce(self, segment: Segment) -> Summary:
        is_completion = segment.is_kind(*_COMPLETIONS)
        is_send = is_completion & segment.is_word("f", {"send"})
        is_send &= segment.numbers("acks", 0) == _ALL_REPLICAS
        others = segment.where(~is_completion).events(*self.columns)
        summary = Summary([item for item in others if _matters(item)])
        for (topic, partition), part in segment.where(is_send).by("topic", "partition"):
            if topic is not None and partition is not None:
                summary.answers[topic, partition] = _answers(part)
        return summary

    def combine(self, a: Summary, b: Summary) -> Summary:
        for tp, later in b.answers.items():
            known = a.answers[tp]
            both = np.concatenate([known.acknowledged, later.acknowledged])
            a.answers[tp] = Answers(union(both, _WITHIN), known.failures + later.failures)
        return Summary(a.rows + b.rows, a.answers)

    def finish(self, summary: Summary) -> Results:
        bound = bound_ms(summary.rows)
        if bound is None:
            return conclude(LATE_RECOVERY, checked=0)
        windows = unexplained.without_faults(summary.rows, until="final-reads")
        deleted, struck = _deleted(summary.rows), StruckClients(summary.rows)
        findings: list[Finding] = []
        checked, slowest = 0, 0
        for tp, answers in sorted(summary.answers.items()):
            if tp[0] in deleted:
                continue
            answers.failures = sorted(
                failure
                for failure in answers.failures
                if not struck.is_struck(failure.process, failure.time - bound * _MS, failure.time)
            )
            for start, stop in windows:
                first = answers.first_acknowledged(start, stop)
                late = answers.late(start, stop, bound * _MS)
                checked += first is not None or bool(late)
                is_known = answers.last_acknowledged(start) is not None
                if first is not None and is_known:
                    slowest = max(slowest, first - start)
                findings += [_finding(tp, each, bound, summary.rows) for each in late]
        numbers = {"bound_ms": float(bound), "slowest_recovery_ms": slowest / _MS}
        return conclude(LATE_RECOVERY, checked=checked, findings=findings, numbers=numbers)


def _matters(item: Row) -> bool:
    _, event = item
    return event.kind != Kind.ZNODE or (event.path or "").startswith(_DELETIONS)


def _answers(part: Segment) -> Answers:
    is_ok = part.is_kind(Kind.OK)
    times = part.numbers("time")[is_ok]
    errors = [word for word in part.codes("error")[1] if word.partition(" ")[0] in _UNAVAILABLE]
    failed = part.where(~is_ok & part.is_word("error", errors))
    return Answers(
        union(np.stack([times, times], axis=1), _WITHIN),
        [
            Failure(event.time, row, event.process, event.error or "")
            for row, event in failed.events("error")
        ],
    )


def _deleted(rows: Sequence[Row]) -> frozenset[str]:
    """The names of topics whose deletion was requested at some time."""
    paths = (event.path or "" for _, event in rows if event.kind == Kind.ZNODE)
    return frozenset(path.removeprefix(_DELETIONS) for path in paths)


def _finding(tp: TopicPartition, late: Late, bound: int, rows: Sequence[Row]) -> Finding:
    heals = [row for row, event in _heals(rows) if event.time <= late.since]
    waited = (late.last.time - late.since) // _MS
    excuse = unexplained.excuse(rows, late.since, late.last.time, waited - bound)
    sentence = (
        f"{tp_name(*tp)} acknowledged nothing for {waited:,} ms without an active fault; the configuration allows at "
        f"most {bound:,} ms. {late.last.process} got {late.last.error}."
    )
    return finding(
        LATE_RECOVERY.name,
        tp_name(*tp),
        sentence if excuse is None else f"{sentence} But {excuse}.",
        *heals[-1:],
        late.first.row,
        late.last.row,
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


def _heals(rows: Sequence[Row]) -> Iterator[Row]:
    yield from sorted(
        (item for item in rows if item[1].kind == Kind.FAULT_HEALED), key=lambda item: item[1].time
    )


LATE_RECOVERY: Final = Property(
    name="late-recovery",
    promise="While no fault is in force, a partition takes records again within the time-outs of the configuration.",
    unit="windows without faults, for each partition",
    unknown="The harness did not record the time-outs, clients sent nothing with acks=all, or the machine was slow.",
    source="A requirement of this harness: unavailability that no fault and no time-out explains is a bug.",
    check=LateRecovery,
    decided_from=frozenset(
        {EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.FAULTS, EventSource.HARNESS}
    ),
    recorded_since=4,
    reason=ends.late_recovery,
    cause=find.of_late_recovery,
    breaks=breaks.LATE_RECOVERY,
)
