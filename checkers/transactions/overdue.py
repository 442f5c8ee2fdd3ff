"""How long a transaction may last, and whether one that lasted longer is the cluster's fault.

A transaction ends within the time-out of its producer, the interval in which coordinators look for such transactions,
and the time that a cluster may take to recover. Only time without faults counts. A machine without power sends no
reset: a coordinator that has sent markers to this broker waits for ``request.timeout.ms``, 30 s, even if the machine is
back. Until then the power cut counts as in force for the partitions of which the broker takes the markers. Nothing is
certain where a fault moved a wall clock, by which coordinators measure time-outs, nor where the machine may have been
slow (``unexplained``).

Source: KIP-98; TransactionCoordinator.abortTimedOutTransactions; TransactionMarkerChannelManager (one request at a
time to each broker).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.liveness import recovery_bound, unexplained
from nemesis.checkers.liveness.time_spans import Spans, spans
from nemesis.history.events import Kind
from nemesis.history.vocabulary.harness import ABORT_INTERVAL

MS: Final = 1_000_000
"""In ns."""
_END: Final = "end"
_POWER_CUT: Final = "power-cut"
_CLOCKS: Final = "clock"
"""In the names of faults that move wall clocks."""
REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of ``request.timeout.ms``, and the longest that a target here has."""


class RunTime:
    """What the events of a run say about time, those of ``unexplained.KINDS``."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.windows = unexplained.without_faults(rows, _END)
        """The times (ns) in which no fault was in force, up to the end."""
        self._windows_of = {
            leader: unexplained.without_faults(rows, _END, waits)
            for leader, waits in _waits_for_machines(rows).items()
        }
        self.last_window = self.windows[-1] if self.windows else (0, 0)
        self.end_row = max((row for row, event in rows if event.phase == _END), default=None)
        clocks = (event.time for _, event in rows if _CLOCKS in (event.fault or ""))
        self._moved = min(clocks, default=None)
        self._recovery_ms = recovery_bound.bound_ms(rows)
        self._interval_ms = next(
            (event.duration_ms for _, event in rows if event.setting == ABORT_INTERVAL), None
        )

    def windows_of(self, leader: int) -> list[tuple[int, int]]:
        """Return the windows in which no fault was in force for markers that this broker takes; at least one."""
        return self._windows_of.get(leader, self.windows) or [(0, 0)]

    def measured_until(self, end: int) -> int:
        """Return the last time (ns) up to ``end`` for which the delays of nemesis itself are known."""
        return unexplained.measured_until(self._rows, end)

    def bound_ms(self, timeout_ms: int | None) -> int | None:
        """Return how long a transaction with this time-out may last without faults; None if that is not recorded."""
        parts = (self._recovery_ms, self._interval_ms, timeout_ms)
        return None if None in parts else sum(part or 0 for part in parts)

    def doubt(self, since: int, end: int, bound_ms: int | None) -> str | None:
        """Return why a transaction that lasted from ``since`` to ``end`` (ns) may be in order; None if it is not."""
        lasted_ms = max(end - since, 0) // MS
        if bound_ms is None:
            return "how long a transaction may last is not recorded"
        if lasted_ms <= bound_ms:
            return f"a transaction may last {bound_ms:,} ms"
        if self._moved is not None and self._moved <= end:
            return "a wall clock was moved, by which coordinators measure time-outs"
        return unexplained.excuse(self._rows, since, end, lasted_ms - bound_ms)


def _waits_for_machines(rows: Sequence[Row]) -> dict[int, Spans]:
    """Return, by broker whose machine has lost power, the spans (ns) in which a coordinator may wait for its answer."""
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, event in rows:
        if event.kind == Kind.FAULT_APPLIED and event.fault == _POWER_CUT:
            for target in event.targets or ():
                broker = int(target.removeprefix("broker-"))
                pairs[broker].append((event.time, event.time + REQUEST_TIMEOUT_MS * MS))
    return {broker: spans(items) for broker, items in pairs.items()}
