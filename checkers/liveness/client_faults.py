"""When faults struck client processes: what such a client observed is not a delay of the cluster.

A client fault explains nothing that brokers do, so ``attribution`` leaves it out. A process that was killed or paused
measures no time meanwhile: an answer waited for it, and its time-outs passed while it slept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Kind
from nemesis.history.vocabulary.faults import CLIENT_FAULTS

COLUMNS: Final = ("fault", "fault_id", "targets")
_FOREVER_NS: Final = 2**63 - 1


class StruckClients:
    """By process the spans (ns) from the beginning of a client fault to its end."""

    def __init__(self, rows: Iterable[Row]) -> None:
        begun: dict[int | None, tuple[int, tuple[str, ...]]] = {}
        healed: dict[int | None, int] = {}
        for _, event in rows:
            if event.fault not in CLIENT_FAULTS:
                continue
            if event.kind == Kind.FAULT_INVOKE:
                begun[event.fault_id] = event.time, tuple(event.targets or ())
            elif event.kind == Kind.FAULT_HEALED:
                healed[event.fault_id] = event.time
        self._spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, (start, targets) in begun.items():
            for target in targets:
                self._spans[target].append((start, healed.get(number, _FOREVER_NS)))

    def is_struck(self, process: str, since: int, until: int) -> bool:
        """Whether a fault was in force at some time of this span. ``process`` may be one of several of a client."""
        return any(start <= until and since <= stop for start, stop in self._of(process))

    def last_end(self, process: str, until: int) -> int:
        """Return when the last fault that had begun by this time ended; 0 if there was no fault."""
        return max((stop for start, stop in self._of(process) if start <= until), default=0)

    def _of(self, process: str) -> list[tuple[int, int]]:
        return self._spans.get(process.partition(".")[0], [])
