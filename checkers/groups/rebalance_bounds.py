"""What took longer in a group than its time-outs permit: JoinGroups, silent members, members that wait alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.groups.group_operations import (
    COMMIT,
    FETCH,
    HEARTBEAT,
    JOIN,
    SYNC,
    Group,
    Operation,
)
from nemesis.checkers.groups.loads import Loads
from nemesis.checkers.groups.rebalance_durations import waits
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.history.events import NO_ANSWER, Kind
from nemesis.history.vocabulary.harness import (
    GROUP_DELAY,
    MEMBER_REBALANCE,
    MEMBER_SESSION,
    STORE_TIMEOUT,
)

MS: Final = 1_000_000
TIMER_MS: Final = 200
"""Kafka looks at its timers at least as often as this."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """In milliseconds."""

    session: int
    join: int
    static_join: int
    """Of a static member: a coordinator stores who has taken over, and answers when that has succeeded or failed."""
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
        static_join = max(join, ms[STORE_TIMEOUT])
        lone = 2 * (join + ms[STORE_TIMEOUT]) + session
        return cls(session + TIMER_MS, join + TIMER_MS, static_join + TIMER_MS, lone + 3 * TIMER_MS)


class Late(NamedTuple):
    """Something took longer than its bound: since when, until when, and the operations that prove it."""

    sentence: str
    since: int
    until: int
    bound_ms: int
    proof: tuple[Operation, ...]


def all_late(
    group: Group,
    bounds: Bounds,
    loads: Loads,
    windows: list[tuple[int, int]],
    struck: StruckClients,
) -> Iterator[Late]:
    """Find what took too long; ``windows`` are the times (ns) without a fault of the cluster in force."""
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
        has_answer = join.is_ok or join.is_refused or (join.event.error or "") == NO_ANSWER
        bound_ms = bounds.join if join.event.instance is None else bounds.static_join
        if has_answer and join.ended - join.began > bound_ms * MS:
            sentence = (
                f"Broker {join.event.node} did not answer the JoinGroup of {join.event.process}"
            )
            yield Late(sentence, join.began, join.ended, bound_ms, (join,))


def _outlived(
    group: Group, bounds: Bounds, loads: Loads, windows: list[tuple[int, int]]
) -> Iterator[Late]:
    """Find generations that went on although a member had fallen silent."""
    by_generation: dict[tuple[int | None, int], list[Operation]] = defaultdict(list)
    for beat in group.ok(HEARTBEAT):
        by_generation[beat.event.node, beat.generation].append(beat)
    for last in _silent(group):
        ended = last.ended + bounds.session * MS
        for beat in by_generation[last.event.node, last.generation]:
            start = _window_start(windows, beat)
            if start is None or beat.began <= max(ended, start + TIMER_MS * MS):
                continue
            began = _session_began(group, loads, last, beat)
            if beat.event.member != last.event.member and _has_passed(began, bounds, beat):
                sentence = (
                    f"Generation {last.generation} of {beat.event.process} did not end after "
                    f"{last.event.process} fell silent,"
                )
                since = max(last.ended, began or 0, start)
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
        over = max(before.ended + bounds.session * MS, start + TIMER_MS * MS)
        if request.began <= over or before.event.node != request.event.node:
            continue
        began = _session_began(group, loads, before, request)
        if _has_passed(began, bounds, request):
            process = request.event.process
            sentence = f"Broker {request.event.node} did not end the session of {process}, which was silent,"
            since = max(before.ended, began or 0, start)
            yield Late(sentence, since, request.ended, bounds.session, (before, request))


def _session_began(group: Group, loads: Loads, last: Operation, request: Operation) -> int | None:
    """Return when the session of which ``last`` is the last sign had begun at the latest (ns).

    None if that is not certain: the broker of both may have loaded its groups in between. A broker that loads answers
    heartbeats, and begins all sessions when it has loaded: it has when it answers a request that it must look up.
    """
    load = loads.latest(last.event.node, last.began)
    if load is None or not loads.none_between(last, request):
        return None
    looked_up = (
        item.ended
        for item in group.ok(COMMIT, SYNC, JOIN)
        if item.event.node == last.event.node and item.began > load
    )
    loaded = min(looked_up, default=None)
    return None if loaded is None else max(last.ended, loaded)


def _has_passed(began: int | None, bounds: Bounds, request: Operation) -> bool:
    """Whether a session that had begun by then was to end before a request."""
    return began is not None and request.began > began + bounds.session * MS


def _window_start(windows: list[tuple[int, int]], request: Operation) -> int | None:
    """Return when the last fault before a request had ended; None if one was in force.

    A broker that was paused in a fault has its timers late, by at most ``TIMER_MS`` after the fault.
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
    for wait in waits(group):
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
        if last.ended - since > bounds.lone * MS:
            sentence = f"{process} joined and got no assignment, and no other process was there,"
            yield Late(sentence, since, last.ended, bounds.lone, (joined, last))
