"""When the cluster has no excuse for being late: no fault is in force, and the machine was fast enough.

Any fault in force explains all, wherever it strikes: from its ``fault-invoke`` until its end was verified. A fault
whose end was not verified explains everything after it. A fault of a client process explains nothing (``client_faults``
says what that client cannot have measured).

On a starved machine nothing happens in time. So a delay is the cluster's only if the harness measured, over the whole
time, that its own loop was never late by more than 100 ms and that the machine's load (``nemesis.running.lateness``) is
shorter than what exceeds the bound. In simulation nothing is ever late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.liveness import attribution
from nemesis.checkers.liveness.time_spans import NONE, Spans, complement, spans, union
from nemesis.history.events import Kind
from nemesis.history.vocabulary.faults import VERIFIED

KINDS: Final = frozenset(
    {*attribution.KINDS, Kind.PHASE, Kind.HARNESS_LAG, Kind.MACHINE_LOAD, Kind.TIMEOUT_SETTING}
)
COLUMNS: Final = ("fault", "fault_id", "effect", "phase", "duration_ms", "setting")
"""The columns of these kinds that this module and ``recovery_bound`` read."""
MAX_LAG_MS: Final = 100


def without_faults(
    rows: Sequence[Row], until: str, after_effects: Spans = NONE
) -> list[tuple[int, int]]:
    """Return the windows (ns) in which no fault was in force, up to the beginning of the phase ``until``.

    ``after_effects`` are spans (ns) that faults explain for longer.
    """
    times = [event.time for _, event in rows if event.time >= 0]
    ends = [event.time for _, event in rows if event.phase == until]
    start, stop = min(times, default=0), min([*ends, max(times, default=0)])
    with_faults = union(np.concatenate([explained(rows), after_effects]))
    return [(int(begin), int(end)) for begin, end in complement(with_faults, start, stop)]


def explained(rows: Iterable[Row]) -> Spans:
    """Return the spans (ns) in which one of these faults explains what it concerns."""
    ended = [item for item in rows if not _is_unverified(item)]
    return spans((force.start_ns, force.stop_ns) for force in attribution.in_force(ended))


def measured_until(rows: Sequence[Row], end: int) -> int:
    """Return the time (ns) of the last measurement of the machine up to ``end``; ``end`` if nothing was measured."""
    times = [event.time for _, event in rows if event.kind == Kind.HARNESS_LAG]
    return max((time for time in times if time <= end), default=end)


def excuse(rows: Sequence[Row], since: int, until: int, over_ms: int) -> str | None:
    """Return why the machine, and not the cluster, may have exceeded the bound by so much; None if it cannot have.

    ``since`` and ``until`` (ns): when the wait began and ended. ``over_ms`` is rounded down: at 0 the bound is exceeded
    by less than a millisecond, which only a machine without any load cannot explain.
    """
    lags = _reported(rows, Kind.HARNESS_LAG, since, until)
    if lags is None:
        return "the delays of nemesis itself were not measured up to that time"
    if max(lags) > MAX_LAG_MS:
        return f"nemesis itself was up to {max(lags):,} ms late, because the machine was busy"
    loads = _reported(rows, Kind.MACHINE_LOAD, since, until)
    if loads is None:
        return "the load of this machine was not measured at that time"
    if sum(loads) >= max(over_ms, 1):
        return f"this machine was busy for up to {sum(loads):,} ms of that time"
    return None


def _is_unverified(item: Row) -> bool:
    _, event = item
    return event.kind == Kind.FAULT_HEALED and event.effect != VERIFIED


def _reported(rows: Sequence[Row], kind: Kind, since: int, until: int) -> list[int] | None:
    """The milliseconds that were reported for this time; None if nothing was reported at or after its end.

    An event reports on the time since the one before it, so the first event at or after the end still counts.
    """
    reports = sorted(
        (event.time, event.duration_ms or 0)
        for _, event in rows
        if event.kind == kind and event.time > since
    )
    inside = [ms for time, ms in reports if time < until]
    after = [ms for time, ms in reports if time >= until]
    return [*inside, after[0]] if after else None
