"""Preferred replicas lead again: the controller balances the leaders as often as it is configured to.

**leaders-balanced**: if more than ``leader.imbalance.per.broker.percentage`` of the partitions that prefer a broker are
led by others, the controller elects the broker for each of them in whose ISR it is, within
``leader.imbalance.check.interval.seconds`` and the session time-out. A new controller looks for the first time 5 s
after its failover, and has until then in any case.
Smallest break: the interval is 1 s; broker 2 leads t-0, which prefers broker 1; broker 1 is in the ISR, and nothing
changes for 6 s after the failover of controller 1.

Why the bound holds: the task is scheduled again when it has run, so it begins within the interval. The controller
handles one event after the other, and none waits for anything but ZooKeeper. When the window without faults begins,
ZooKeeper may not have answered for some time: at most for the session time-out and a tick, or the controller would
lose its session, and with it its term.

A partition waits (``preferred_leaders``) in ZooKeeper's order. The wait counts from the latest of: the first trace of
the transaction with which it began, or of a later one; the end of the failover; the end of the last fault. It counts up
to the last time at which the transaction that ended it certainly had not happened yet (``ZxidStarts``), the beginning
of the next fault, or the last measurement of the machine before the end of the run.

What a correct cluster does and is not convicted for: a partition whose preferred replica is dead or not in the ISR; any
partition while some partition moves or some topic is to be deleted; a broker whose share is at the limit; a controller
that was deposed, resigned or lost its session meanwhile; elections after the interval while a fault was in force. What
the machine may explain is ``unknown``, and up to 100 ms of it are not a finding.

Limits: with the default interval of 300 s only the first look of each controller falls into a run. That the balance
moves nothing that it should leave is judged by ``elections-answered``. Without the trace of a later transaction, when a
wait began is unknown, and the wait is not judged.
Source: KafkaController (checkAndTriggerAutoLeaderRebalance, auto-leader-rebalance-task).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nemesis.checkers import znodes
from nemesis.checkers.breaks import leader_balance as breaks
from nemesis.checkers.explain import leader_balance as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.preferred_leaders import Wait, waits
from nemesis.checkers.liveness.recovery_bound import session_bound_ms
from nemesis.checkers.liveness.terms import Term, terms_of
from nemesis.checkers.zxid_times import ZxidStarts, ZxidTimes
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import (
    BALANCE_ENABLED,
    BALANCE_INTERVAL,
    BALANCE_PERCENTAGE,
)

_FIRST_LOOK_MS: Final = 5_000
"""After the failover: Kafka has no setting for it."""
_MS: Final = 1_000_000


class Late(NamedTuple):
    """A wait of a partition for its preferred leader, as far as nothing explains it, in ns."""

    since: int
    until: int
    due: int
    """When the preferred leader should have been elected at the latest."""

    @property
    def over(self) -> int:
        return self.until - self.due


@dataclass(frozen=True, slots=True)
class Balance:
    """What decides how long a partition may wait."""

    interval_ms: int
    session_ms: int
    windows: Sequence[tuple[int, int]]
    times: ZxidTimes
    starts: ZxidStarts
    resigned: Mapping[int | None, int]
    """When controllers resigned, by epoch."""
    end: int | None
    """When the machine was measured last before the run ended; None if the run was interrupted."""

    def longest(self, wait: Wait, term: Term) -> Late | None:
        """Return the wait in the window in which it exceeds the bound most; None if it cannot be judged."""
        known, until = self.times.known(wait.since_zxid), self._until(wait, term)
        failover = term.failover[1].time
        if known is None or until is None:
            return None
        first_look = failover + _FIRST_LOOK_MS * _MS
        spans = [(max(start, known, failover), min(stop, until)) for start, stop in self.windows]
        return max(
            (
                Late(
                    start,
                    stop,
                    max(start + self.interval_ms * _MS, first_look) + self.session_ms * _MS,
                )
                for start, stop in spans
                if start < stop
            ),
            key=lambda late: late.over,
            default=None,
        )

    def _until(self, wait: Wait, term: Term) -> int | None:
        zxid = wait.until_zxid
        until = self.end if zxid is None else self.starts.not_before(zxid)
        if until is None:
            return None
        return min(until, self.resigned.get(term.controller_epoch, until))


class LeaderBalance(EventListCheck):
    kinds = frozenset(
        {
            Kind.ZNODE,
            Kind.CONTROLLER_ELECTED,
            Kind.CONTROLLER_FAILOVER,
            Kind.CONTROLLER_RESIGNED,
            Kind.LEADER_ELECTED,
            Kind.ALTER_PARTITION_HANDLED,
            Kind.BROKER_REGISTERED,
            Kind.ZNODE_ATTEMPT,
            Kind.ZNODE_OUTCOME,
            Kind.BROKER_PROPERTY,
            *unexplained.KINDS,
        }
    )
    columns = (*znodes.COLUMNS, "incarnation", "count", *unexplained.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADERS_BALANCED,)

    def judge(self, rows: list[Row]) -> Results:
        terms, settings = terms_of(rows), _settings(rows)
        session_ms = session_bound_ms(rows)
        if session_ms is None or not settings.keys() >= {BALANCE_INTERVAL, BALANCE_PERCENTAGE}:
            return conclude(LEADERS_BALANCED, checked=0)
        if not settings.get(BALANCE_ENABLED):
            return conclude(LEADERS_BALANCED, checked=len(terms))
        balance = _balance(rows, settings[BALANCE_INTERVAL] * 1000, session_ms)
        judged = [
            (wait, term, late)
            for wait in waits(rows, settings[BALANCE_PERCENTAGE])
            if (term := _term(terms, wait)) is not None
            and (late := balance.longest(wait, term)) is not None
        ]
        findings = [
            late_wait
            for wait, term, late in judged
            if late.over > 0
            for late_wait in _findings(wait, term, late, rows)
        ]
        slowest = max((late.until - late.since for _, _, late in judged), default=0)
        return conclude(
            LEADERS_BALANCED,
            checked=len(judged) + (0 if balance.end is None else len(terms)),
            findings=findings,
            numbers={"longest_wait_ms": slowest / _MS},
        )


def _settings(rows: Sequence[Row]) -> dict[str, int]:
    stated = (event for _, event in rows if event.kind == Kind.BROKER_PROPERTY)
    return {event.setting or "": event.count or 0 for event in stated}


def _balance(rows: Sequence[Row], interval_ms: int, session_ms: int) -> Balance:
    ends = [event.time for _, event in rows if event.phase == "end"]
    return Balance(
        interval_ms,
        session_ms,
        unexplained.without_faults(rows, until="end"),
        ZxidTimes(rows),
        ZxidStarts(rows),
        {
            event.controller_epoch: event.time
            for _, event in rows
            if event.kind == Kind.CONTROLLER_RESIGNED
        },
        unexplained.measured_until(rows, ends[-1]) if ends else None,
    )


def _term(terms: Sequence[Term], wait: Wait) -> Term | None:
    """Return the term in which a partition waited; None if its controller never finished its failover."""
    return next(
        (
            term
            for term in terms
            if term.granted_zxid <= wait.since_zxid
            and (term.next_zxid is None or wait.since_zxid < term.next_zxid)
        ),
        None,
    )


def _findings(wait: Wait, term: Term, late: Late, rows: Sequence[Row]) -> Iterator[Finding]:
    excuse = unexplained.excuse(rows, late.since, late.until, late.over // _MS)
    if excuse is not None and late.over // _MS <= unexplained.MAX_LAG_MS:
        return
    row, event = wait.state
    failover_row, failover = term.failover
    sentence = (
        f"Broker {event.leader} led {tp_name(*wait.tp)} for {(late.until - late.since) // _MS:,} ms without an "
        f"active fault, and controller {failover.node} did not elect broker {wait.broker}, which the partition "
        f"prefers: it was in the ISR and led {wait.led} of the {wait.preferring} partitions that prefer it. The "
        f"configuration allows at most {(late.due - late.since) // _MS:,} ms."
    )
    yield finding(
        LEADERS_BALANCED.name,
        tp_name(*wait.tp),
        sentence if excuse is None else f"{sentence} But {excuse}.",
        row,
        failover_row,
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


LEADERS_BALANCED: Final = Property(
    name="leaders-balanced",
    promise="Where a broker leads too few of the partitions that prefer it, the controller elects it in time.",
    unit="terms of controllers, and waits for a preferred leader",
    unknown="The settings or the end of the run were not recorded, no failover finished, or the machine was slow.",
    source="KafkaController (checkAndTriggerAutoLeaderRebalance, auto-leader-rebalance-task).",
    check=LeaderBalance,
    decided_from=frozenset(
        {EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}
    ),
    recorded_since=5,
    reason=explain.leaders_balanced,
    breaks=breaks.LEADERS_BALANCED,
)
