"""Which kind of fault a stretch is put down to, and what the stretches of one kind come to.

A stretch is put down to one fault at most: of those in force when it begins the one that was begun last, else the first
that was begun while it lasted. So the stretches of all kinds together are all stretches, each once. A fault is in force
from ``fault-invoke`` (a rolling restart is applied only when it is over) to ``fault-healed``.

Limit: of two faults in force together the earlier one gets nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.model import Distribution, Stretch
from nemesis.history.events import Kind
from nemesis.history.vocabulary.faults import CLIENT_FAULTS

ALL: Final = "all"
NO_FAULT: Final = "none"
KINDS: Final = frozenset(
    {Kind.FAULT_INVOKE, Kind.FAULT_APPLIED, Kind.FAULT_SKIPPED, Kind.FAULT_HEALED}
)
COLUMNS: Final = ("fault", "fault_id", "targets")
_FOREVER_NS: Final = 2**63 - 1
_MS: Final = 1_000_000


class Force(NamedTuple):
    """A fault was in force."""

    start_ns: int
    stop_ns: int
    fault: str


def in_force(rows: Iterable[Row]) -> list[Force]:
    """Return the faults that were not skipped, by their beginnings. Those of clients are left out."""
    begun: dict[int, tuple[int, str]] = {}
    healed: dict[int, int] = {}
    for _, event in rows:
        if event.fault_id is None or event.fault in CLIENT_FAULTS:
            continue
        if event.kind in (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED):
            start, _ = begun.get(event.fault_id, (event.time, ""))
            begun[event.fault_id] = (min(start, event.time), event.fault or "?")
        elif event.kind == Kind.FAULT_SKIPPED:
            healed[event.fault_id] = -1
        elif event.kind == Kind.FAULT_HEALED:
            healed[event.fault_id] = event.time
    forces = [
        Force(start, healed.get(number, _FOREVER_NS), fault)
        for number, (start, fault) in begun.items()
    ]
    return sorted(force for force in forces if force.stop_ns >= force.start_ns)


def put_down_to(forces: Sequence[Force], start_ns: int, stop_ns: int) -> str:
    """Return the kind of fault to which a stretch is put down; ``NO_FAULT`` if none was in force."""
    before = [force for force in forces if force.start_ns <= start_ns <= force.stop_ns]
    if before:
        return before[-1].fault
    during = (force.fault for force in forces if start_ns < force.start_ns <= stop_ns)
    return next(during, NO_FAULT)


def distributions(label: str, stretches: Sequence[Stretch]) -> list[Distribution]:
    """Return that of all these stretches, then one for each kind of fault, the longest in all first."""
    by_fault: dict[str, list[Stretch]] = {}
    for stretch in stretches:
        by_fault.setdefault(stretch.fault, []).append(stretch)
    parts = [_distribution(label, fault, own) for fault, own in by_fault.items()]
    parts.sort(key=lambda distribution: (-distribution.total_ms, distribution.fault))
    return [_distribution(label, ALL, stretches), *parts]


def _distribution(label: str, fault: str, stretches: Sequence[Stretch]) -> Distribution:
    lasted = sorted((stretch.stop_ns - stretch.start_ns) / _MS for stretch in stretches)
    return Distribution(
        label=label,
        fault=fault,
        count=len(lasted),
        total_ms=math.fsum(lasted),
        median_ms=_quantile(lasted, 0.5),
        p90_ms=_quantile(lasted, 0.9),
        max_ms=_quantile(lasted, 1.0),
    )


def _quantile(ascending: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; 0 of none."""
    return ascending[math.ceil(share * len(ascending)) - 1] if ascending else 0.0
