"""Rebalances of consumer groups end, within the time-outs of the configuration.

**rebalances-end**: while no fault is in force,

* a JoinGroup is answered within the rebalance time-out of the members (or ``group.initial.rebalance.delay.ms``, if that
  is longer): by then the members that have not joined are out of the group. That of a static member may wait for
  ``offsets.commit.timeout.ms`` instead, if that is longer. Without a rebalance, the coordinator stores who has taken
  over, and answers when this has succeeded or failed (KIP-345);
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

Any fault of the cluster in force explains all, and so may a slow machine: ``unexplained`` says when. Each bound
(``rebalance_bounds``) includes what Kafka's timers may add. A member whose process is killed or paused has fallen
silent as any other: its session has to end. Only what its own process measured meanwhile is not judged
(``client_faults``).

What a correct cluster does and is not convicted for: sessions begin again when a coordinator loads its groups, which
traces of brokers show (``loads``), so silent members are judged only where brokers trace; a request whose outcome is
unknown may have been a sign of life; another process takes over a static member that has fallen silent.

Limit: what a group whose members come and go needs in all is only counted. The workload ends soon after the last fault.
Source: KIP-62, KIP-134, KIP-345; GroupCoordinator.onExpireHeartbeat, DelayedJoin, DelayedSync.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

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
    FUNCTIONS,
    JOIN,
    WORKLOADS,
    Operation,
    groups,
)
from nemesis.checkers.groups.loads import Loads
from nemesis.checkers.groups.rebalance_bounds import MS, Bounds, Late, all_late
from nemesis.checkers.groups.rebalance_durations import durations
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.client_faults import StruckClients
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

_END: Final = "convergence"
"""The phase with which clients of groups have ended."""


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
        took_ms: list[float] = []
        known = sorted(groups(rows).items())
        for key, group in known:
            took_ms += durations(group)
            findings += [
                _finding(key, late, rows)
                for late in all_late(group, bounds, loads, windows, struck)
                if any(start <= late.since and late.until <= stop for start, stop in windows)
            ]
        checked = sum(len(group.ok(JOIN)) for _, group in known)
        numbers = {"rebalances": float(len(took_ms)), "join_bound_ms": float(bounds.join)}
        if took_ms:
            numbers |= {"median_ms": median(took_ms), "longest_ms": max(took_ms)}
        return conclude(REBALANCES_END, checked=checked, findings=findings, numbers=numbers)


def _finding(key: str, late: Late, rows: list[Row]) -> Finding:
    took = (late.until - late.since) // MS
    excuse = unexplained.excuse(rows, late.since, late.until, took - late.bound_ms)
    sentence = f"{late.sentence} within {late.bound_ms:,} ms in {key}, without an active fault."
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
