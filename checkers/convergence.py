"""After the faults are healed, the cluster comes back within the stated time.

**convergence**: each check that the harness made after the heal (a controller, a leader for every partition, full
ISRs, metadata caches that equal ZooKeeper, produce and fetch on every partition) ended well.
The initial topics got their leaders before the first fault.
Smallest break: one ``convergence`` event with an error. ``numbers`` holds the slowest time of each check.

What a correct cluster does and is not convicted for: a check may fail and be repeated, its last outcome counts; on a
starved machine nothing converges, so if the harness's own loop was late by more than a second between the heal and a
failed check, that check is ``unknown`` instead of ``invalid``. A report of lag covers the time since the report
before, so the first one after the check still counts, and no later one does. Success needs no such excuse. A check
whose error begins with ``HARNESS: `` is one that the harness could not make: it says nothing of the cluster and is
``unknown``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nemesis.checkers.breaks import ends as breaks
from nemesis.checkers.causes import find
from nemesis.checkers.explain import ends
from nemesis.checkers.explain.words import HARNESS
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.history.events import INITIAL_TOPICS, Event, Kind
from nemesis.history.sources import EventSource

HEAL = "heal"
MAX_HARNESS_LAG_MS = 1_000


class _Lag(NamedTuple):
    """The harness's own loop was late, at some time since the report before."""

    time: int
    """When it was reported, in ns."""
    duration_ms: int
    row: int


class Convergence(EventListCheck):
    kinds = frozenset({Kind.CONVERGENCE, Kind.HARNESS_LAG, Kind.PHASE})
    columns = ("check", "phase", "error", "topic", "partition", "node", "duration_ms")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CONVERGENCE,)

    def judge(self, rows: list[Row]) -> Results:
        lags = _lags_since_heal(rows)
        when = _when(rows)
        outcomes: dict[tuple[str | None, str | None, int | None, int | None], Row] = {}
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
            if event.kind == Kind.CONVERGENCE:
                outcomes[event.check, event.topic, event.partition, event.node] = (row, event)
        numbers = {"harness_lag_ms": float(max((lag.duration_ms for lag in lags), default=0))}
        findings: list[Finding] = []
        for row, event in outcomes.values():
            if succeeded(event):
                name = f"{(event.check or 'convergence').replace(' ', '_').replace('-', '_')}_ms"
                numbers[name] = max(numbers.get(name, 0.0), float(event.duration_ms or 0))
            elif (event.error or "").startswith(HARNESS):
                blind = finding(
                    self.name, _about(event), _blindness(event), row, verdict=Verdict.UNKNOWN
                )
                findings.append(blind)
            elif (lag := _longest(lags, event.time)) is not None:
                sentence = (
                    f"{_failure(event, when)} But nemesis itself was up to {lag.duration_ms} ms late, because the "
                    "machine was busy."
                )
                doubt = finding(
                    self.name, _about(event), sentence, row, lag.row, verdict=Verdict.UNKNOWN
                )
                findings.append(doubt)
            else:
                findings.append(finding(self.name, _about(event), _failure(event, when), row))
        return conclude(CONVERGENCE, checked=len(outcomes), findings=findings, numbers=numbers)


def _when(rows: list[Row]) -> str:
    """When the checks were made: a cluster that is not ready for the workload is not given any fault."""
    is_unready = any(event.check == INITIAL_TOPICS for _, event in rows)
    return "Without any fault" if is_unready else "After the faults"


def _failure(event: Event, when: str) -> str:
    if event.check == INITIAL_TOPICS:
        return f"{when}, {event.error}."
    return f"{when}, {_about(event)} did not recover in time: {event.error} (failed check: {event.check})."


def _blindness(event: Event) -> str:
    why = (event.error or "").removeprefix(HARNESS)
    return (
        f"After the faults, it could not be observed whether {_about(event)} recovered: {why} (failed check: "
        f"{event.check})."
    )


def _about(event: Event) -> str:
    if event.topic is not None:
        return event.topic if event.partition is None else tp_name(event.topic, event.partition)
    return "the cluster" if event.node is None else f"broker-{event.node}"


def _lags_since_heal(rows: list[Row]) -> list[_Lag]:
    """Return the reports of lag from the heal on (from the start if no heal is recorded), in order of time."""
    heals = [event.time for _, event in rows if event.kind == Kind.PHASE and event.phase == HEAL]
    since = max(heals, default=-1)
    return sorted(
        _Lag(event.time, event.duration_ms or 0, row)
        for row, event in rows
        if event.kind == Kind.HARNESS_LAG and event.time >= since
    )


def _longest(lags: list[_Lag], time: int) -> _Lag | None:
    """Return the greatest lag up to a failed check, if it explains the failure."""
    following = next((index for index, lag in enumerate(lags) if lag.time >= time), len(lags))
    longest = max(lags[: following + 1], key=lambda lag: lag.duration_ms, default=None)
    return longest if longest is not None and longest.duration_ms > MAX_HARNESS_LAG_MS else None


CONVERGENCE: Final = Property(
    name="convergence",
    promise="After all faults have ended, the cluster recovers within the time that the scenario allows.",
    unit="conditions",
    unknown="A part of the cluster could not be observed, or nemesis was more than a second late itself.",
    source="A requirement of nemesis: without faults a cluster recovers by itself.",
    check=Convergence,
    decided_from=frozenset({EventSource.HARNESS}),
    reason=ends.convergence,
    cause=find.of_convergence,
    breaks=breaks.CONVERGENCE,
)
