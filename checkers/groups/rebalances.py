"""Rebalances of consumer groups end, within the time-outs of the configuration.

**rebalances-end**: while no fault is in force,

* a JoinGroup is answered within the rebalance time-out of the members (or ``group.initial.rebalance.delay.ms``, if that
  is longer): by then the members that have not joined are out of the group;
* once a member has shown no sign of life for its session time-out, its generation ends: no other member has a heartbeat
  of that generation accepted by the same coordinator, and no later request under its member id is;
* a member that has joined, while no other process of the group sends anything, has its assignment within twice the
  rebalance time-out and twice ``offsets.commit.timeout.ms``, and a session time-out: the leader of the generation may
  have failed (its session ends), the others join again, and the group is stored each time.

Smallest breaks: a JoinGroup waits for longer than the rebalance time-out; a member falls silent, and the heartbeat of
another one in their generation is accepted after the session time-out, or its own; a member joins, and asks for its
assignment until the bound has passed.

``numbers`` holds how many generations were assigned, and how long each took, from the first JoinGroup of one of its
members to the last assignment: median and maximum, faults included.

Any fault of the cluster in force explains all, and so may a slow machine: ``unexplained`` says when. ``_TIMER_MS`` is
what Kafka's timers may add. A member whose process is killed or paused has fallen silent as any other: its session has
to end. Only what its own process measured meanwhile is not judged (``client_faults``).

What a correct cluster does and is not convicted for: sessions begin again when a coordinator loads its groups, which
traces of brokers show (``loads``), so silent members are judged only where brokers trace; a request whose outcome is
unknown may have been a sign of life; another process takes over a static member that has fallen silent.

Limit: what a group whose members come and go needs in all is only counted. The workload ends soon after the last fault.
Source: KIP-62, KIP-134; GroupCoordinator.onExpireHeartbeat, DelayedJoin, DelayedSync.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Final, NamedTuple

from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import rebalances as breaks
from nemesis.checkers.explain import groups as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.groups.group_operations import (
    COLUMNS,
    COMMIT,
    FETCH,
    FUNCTIONS,
    HEARTBEAT,
    JOIN,
    SYNC,
    WORKLOADS,
    Group,
    Operation,
    groups,
)
from nemesis.checkers.groups.loads import Loads
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import (
    GROUP_DELAY,
    MEMBER_REBALANCE,
    MEMBER_SESSION,
    STORE_TIMEOUT,
)

_MS: Final = 1_000_000
_TIMER_MS: Final = 200
"""Kafka looks at its timers at least as often as this."""
_NO_ANSWER: Final = "CLIENT_TIMED_OUT"
_END: Final = "convergence"
"""The phase with which clients of groups have ended."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """In milliseconds."""

    session: int
    join: int
    lone: int

    @classmethod
    def of(cls, rows: list[Row]) -> Bounds | None:
        """Return the bounds; None if the history does not state every setting."""
        ms = {
            event.setting: event.duration_ms or 0
            for _, event in rows
            if event.kind == Kind.TIMEOUT_SETTING
        }
        if not ms.keys() >= {MEMBER_SESSION, MEMBER_REBALANCE, GROUP_DELAY, STORE_TIMEOUT}:
            return None
        session, join = ms[MEMBER_SESSION], max(ms[MEMBER_REBALANCE], ms[GROUP_DELAY])
        lone = 2 * (join + ms[STORE_TIMEOUT]) + session
        return cls(session + _TIMER_MS, join + _TIMER_MS, lone + 3 * _TIMER_MS)


class Late(NamedTuple):
    """Something took longer than its bound: since when, until when, and the operations that prove it."""

    sentence: str
    since: int
    until: int
    bound_ms: int
    proof: tuple[Operation, ...]


class Rebalances(Administered):
    operations = FUNCTIONS
    kinds = frozenset({*CLIENT_KINDS, *unexplained.KINDS, Kind.BECOME_LEADER})
    columns = (*COLUMNS, "error", *unexplained.COLUMNS, "targets")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (REBALANCES_END,)

    def judge(self, rows: list[Row]) -> Results:
        bounds = Bounds.of(rows)
        if bounds is None:
            return conclude(REBALANCES_END, checked=0)
        loads, windows = Loads(rows), unexplained.without_faults(rows, until=_END)
        struck = StruckClients(rows)
        findings: list[Finding] = []
        durations: list[float] = []
        known = sorted(groups(rows).items())
        for key, group in known:
            durations += _durations(group)
            findings += [
                _finding(key, late, rows)
                for late in _all_late(group, bounds, loads, windows, struck)
                if any(start <= late.since and late.until <= stop for start, stop in windows)
            ]
        checked = sum(len(group.ok(JOIN)) for _, group in known)
        numbers = {"rebalances": float(len(durations)), "join_bound_ms": float(bounds.join)}
        if durations:
            numbers |= {"median_ms": median(durations), "longest_ms": max(durations)}
        return conclude(REBALANCES_END, checked=checked, findings=findings, numbers=numbers)


def _all_late(
    group: Group,
    bounds: Bounds,
    loads: Loads,
    windows: list[tuple[int, int]],
    struck: StruckClients,
) -> Iterator[Late]:
    yield from _unanswered(group, bounds, struck)
    yield from _outlived(group, bounds, loads, windows)
    yield from _returned(group, bounds, loads, windows)
    yield from _unassigned(group, bounds, struck)


def _unanswered(group: Group, bounds: Bounds, struck: StruckClients) -> Iterator[Late]:
    """Find JoinGroups that were answered too late, or never while their clients waited."""
    for join in group.operations:
        if join.event.f != JOIN or join.completed is None:
            continue
        if struck.is_struck(join.event.process, join.began, join.ended):
            continue
        has_answer = join.is_ok or join.is_refused or (join.event.error or "") == _NO_ANSWER
        if has_answer and join.ended - join.began > bounds.join * _MS:
            sentence = (
                f"Broker {join.event.node} did not answer the JoinGroup of {join.event.process}"
            )
            yield Late(sentence, join.began, join.ended, bounds.join, (join,))


def _outlived(
    group: Group, bounds: Bounds, loads: Loads, windows: list[tuple[int, int]]
) -> Iterator[Late]:
    """Find generations that went on although a member had fallen silent."""
    by_generation: dict[tuple[int | None, int], list[Operation]] = defaultdict(list)
    for beat in group.ok(HEARTBEAT):
        by_generation[beat.event.node, beat.generation].append(beat)
    for last in _silent(group):
        ended = last.ended + bounds.session * _MS
        for beat in by_generation[last.event.node, last.generation]:
            start = _window_start(windows, beat)
            if start is None or beat.began <= max(ended, start + _TIMER_MS * _MS):
                continue
            if beat.event.member != last.event.member and loads.none_between(last, beat):
                sentence = (
                    f"Generation {last.generation} of {beat.event.process} did not end after "
                    f"{last.event.process} fell silent,"
                )
                since = max(last.ended, start)
                yield Late(sentence, since, beat.ended, bounds.session, (last, beat))
                break


def _returned(
    group: Group, bounds: Bounds, loads: Loads, windows: list[tuple[int, int]]
) -> Iterator[Late]:
    """Find members that were accepted although they had sent nothing for longer than their sessions."""
    last: dict[str | None, Operation] = {}
    for request in group.operations:
        member = request.invoked[1].member
        before = last.get(member)
        if request.event.f == FETCH:
            continue  # no sign of life
        last[member] = last[request.event.member] = request
        is_known = before is not None and (before.is_ok or before.is_refused)
        if member is None or before is None or not is_known or not request.is_ok:
            continue
        start = _window_start(windows, request)
        if start is None or request.event.f not in (COMMIT, HEARTBEAT, SYNC):
            continue
        over = max(before.ended + bounds.session * _MS, start + _TIMER_MS * _MS)
        is_same = before.event.node == request.event.node and loads.none_between(before, request)
        if request.began > over and is_same:
            process = request.event.process
            sentence = f"Broker {request.event.node} did not end the session of {process}, which was silent,"
            since = max(before.ended, start)
            yield Late(sentence, since, request.ended, bounds.session, (before, request))


def _window_start(windows: list[tuple[int, int]], request: Operation) -> int | None:
    """Return when the last fault before a request had ended; None if one was in force.

    A broker that was paused in a fault has its timers late, by at most ``_TIMER_MS`` after the fault.
    """
    return next((start for start, stop in windows if start <= request.began <= stop), None)


def _silent(group: Group) -> Iterator[Operation]:
    """Return the last request of each dynamic member, if it was accepted and a sign of life."""
    last: dict[str | None, Operation] = {}
    in_doubt: set[str | None] = set()
    for operation in group.operations:
        for member in {operation.invoked[1].member, operation.event.member}:
            last[member] = operation
            if not (operation.is_ok or operation.is_refused):
                in_doubt.add(member)
    for member, operation in last.items():
        is_sign = operation.is_ok and operation.event.f in (COMMIT, HEARTBEAT, SYNC)
        if is_sign and member not in in_doubt and operation.event.instance is None:
            yield operation


def _unassigned(group: Group, bounds: Bounds, struck: StruckClients) -> Iterator[Late]:
    """Find members that joined, and got no assignment although they were alone."""
    for wait in _waits(group):
        joined = next((item for item in wait if item.event.f == JOIN and item.is_ok), None)
        last = wait[-1]
        if joined is None or last.completed is None or (last.event.f == SYNC and last.is_ok):
            continue
        process = joined.event.process
        others = (
            min(item.ended, last.ended)
            for item in group.operations
            if item.event.process != process and item.began <= last.ended
        )
        since = max(joined.ended, *others, struck.last_end(process, last.ended))
        if last.ended - since > bounds.lone * _MS:
            sentence = f"{process} joined and got no assignment, and no other process was there,"
            yield Late(sentence, since, last.ended, bounds.lone, (joined, last))


def _waits(group: Group) -> Iterator[list[Operation]]:
    """Return the requests of each process from its first JoinGroup to its assignment, or until it goes or the end."""
    by_process = sorted(group.operations, key=lambda item: item.event.process)
    for _, operations in groupby(by_process, key=lambda item: item.event.process):
        wait: list[Operation] = []
        for operation in operations:
            if operation.event.f not in (JOIN, SYNC):
                if operation.event.f != COMMIT and wait:
                    yield wait
                    wait = []
                continue
            wait.append(operation)
            if operation.event.f == SYNC and operation.is_ok:
                yield wait
                wait = []
        if wait:
            yield wait


def _durations(group: Group) -> list[float]:
    """Return how long each generation took that was assigned, in ms."""
    spans: dict[int, tuple[int, int]] = {}
    for wait in _waits(group):
        last = wait[-1]
        if last.event.f == SYNC and last.is_ok:
            began, ended = spans.get(last.generation, (wait[0].began, last.ended))
            spans[last.generation] = min(began, wait[0].began), max(ended, last.ended)
    return [(ended - began) / _MS for began, ended in spans.values()]


def _finding(key: str, late: Late, rows: list[Row]) -> Finding:
    took = (late.until - late.since) // _MS
    excuse = unexplained.excuse(rows, late.since, late.until, took - late.bound_ms)
    sentence = f"{late.sentence} within {late.bound_ms:,} ms in {key}, with no fault in force."
    return finding(
        REBALANCES_END.name,
        key,
        sentence if excuse is None else f"{sentence} But {excuse}.",
        *(row for operation in late.proof for row in _rows(operation)),
        verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
    )


def _rows(operation: Operation) -> Iterator[int]:
    yield operation.invoked[0]
    if operation.completed is not None:
        yield operation.completed[0]


REBALANCES_END: Final = Property(
    name="rebalances-end",
    promise="While no fault is in force, rebalances of groups end within the time-outs of the configuration.",
    unit="joins",
    unknown="No member joined a group, the harness did not record the time-outs, or the machine was slow.",
    source="KIP-62, KIP-134; GroupCoordinator.onExpireHeartbeat, DelayedJoin, DelayedSync.",
    check=Rebalances,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.FAULTS, EventSource.HARNESS}),
    completed_by=frozenset({EventSource.TRACES}),
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.rebalances_end,
    breaks=breaks.REBALANCES_END,
)
