"""Progress of a simulated run, learnt from its events alone.

Whoever asked the cluster would be part of the simulation: the same seed would give another run when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from nemesis.history.events import Event, Kind
from nemesis.running.progress import Status

SHOW_INTERVAL_S = 0.2
"""Real seconds."""


class StatusObserver:
    """Called with every event; calls ``show`` a few times per real second, and at the begin of every phase."""

    def __init__(self, show: Callable[[Status], None]) -> None:
        self._show = show
        self._status = Status(phase="start")
        self._faults: dict[int, str] = {}
        self._started_ns: int | None = None
        self._next_s = 0.0

    def __call__(self, event: Event) -> None:
        self._learn(event)
        now_s = monotonic()
        # Later a phase would be shown with the time and the counts of events that came after.
        if event.kind == Kind.PHASE or now_s >= self._next_s:
            self._next_s = now_s + SHOW_INTERVAL_S
            self._show(self._status)

    def _learn(self, event: Event) -> None:
        status = self._status
        if self._started_ns is not None:
            status.elapsed_s = (event.time - self._started_ns) / 1e9
            status.operations_per_s = status.operations / max(1.0, status.elapsed_s)
        match event.kind:
            case Kind.OK | Kind.FAIL | Kind.INFO:
                status.operations += 1
            case Kind.INVOKE if self._started_ns is None:  # the workload has begun
                self._started_ns = event.time
            case Kind.PHASE:
                status.phase = event.phase or ""
            case Kind.CONTROLLER_ELECTED:
                status.controller = str(event.node)
                status.controller_epoch = event.controller_epoch or 0
            case Kind.FAULT_APPLIED | Kind.FAULT_HEALED if event.fault_id is not None:
                if event.kind == Kind.FAULT_APPLIED:
                    self._faults[event.fault_id] = f"{event.fault} {','.join(event.targets or [])}"
                else:
                    self._faults.pop(event.fault_id, None)
                status.faults = list(self._faults.values())
            case _:
                return
