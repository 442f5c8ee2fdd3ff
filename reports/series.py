"""From a history to what a report draws: faults, phases, controllers, and each partition's epochs, ISR and offsets.

Times are seconds since the run's first event. ZooKeeper's rows carry no time, so everything here comes from what
brokers, clients and the harness traced; a target without traces has no such series, and the page says so. The
leader and the ISR of a partition are those that were committed (``leader-elected``, ``isr-change-committed``),
not what a single broker believed; only if nobody traced an election is a broker's own ``become-leader`` taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nemesis.checkers.framework.segment import ALWAYS, Numbers, Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History
from nemesis.reports.sampling import Floats

NS: Final = 1e9

COLUMNS: Final = (
    *ALWAYS,
    *("op", "f", "error", "node", "controller_epoch", "topic", "partition"),
    *("leader", "leader_epoch", "isr", "high_watermark", "log_end_offset"),
    *("fault", "fault_id", "targets", "effect", "detail", "phase"),
)
"""What reports read of a history."""

_LOG_ENDS = (
    Kind.APPEND,
    Kind.TRUNCATE,
    Kind.LOG_LOADED,
    Kind.BECOME_LEADER,
    Kind.BECOME_FOLLOWER,
)
_PARTITION_KINDS = (
    *_LOG_ENDS,
    Kind.HIGH_WATERMARK,
    Kind.LEADER_ELECTED,
    Kind.ISR_CHANGE_COMMITTED,
)


@dataclass(frozen=True, slots=True)
class Line:
    """Values over time; both arrays are equally long, ``x`` ascends."""

    x: Floats
    y: np.ndarray[tuple[int], np.dtype[np.int64]]

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault as it went. ``start_s`` is None if it was never applied, ``stop_s`` if it was never healed."""

    fault_id: int
    name: str
    targets: tuple[str, ...] = ()
    invoked_s: float | None = None
    start_s: float | None = None
    stop_s: float | None = None
    effect: str = ""
    healed: str = ""
    skipped: str = ""
    """Why, if it was."""
    measured: str = ""
    """JSON, as the nemesis recorded it."""

    @property
    def begun_s(self) -> float:
        """When the nemesis began it; 0 if nothing of it is recorded."""
        return next((time for time in (self.invoked_s, self.start_s) if time is not None), 0.0)

    @property
    def label(self) -> str:
        return f"{self.name} {', '.join(self.targets)}".rstrip()

    @property
    def ended(self) -> frozenset[str]:
        """The processes of which it was measured that they ended, and that the fault itself did not start again."""
        try:
            report = json.loads(self.measured or "{}")
        except ValueError:
            return frozenset()
        nodes = report.items() if isinstance(report, dict) else ()
        return frozenset(
            node for node, about in nodes if isinstance(about, dict) and about.get("dead") is True
        )


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    start_s: float
    stop_s: float


@dataclass(frozen=True, slots=True)
class Reign:
    """A broker was elected controller, or resigned."""

    at_s: float
    epoch: int
    node: int
    resigned: bool = False


@dataclass(frozen=True, slots=True)
class PartitionSeries:
    name: str
    """``orders-0``"""
    leader_epochs: Line
    leaders: tuple[int, ...]
    """The leader of each point of ``leader_epochs``; −1: none."""
    isr: tuple[tuple[float, tuple[int, ...]], ...]
    high_watermark: Line
    """The leader's."""
    log_ends: Mapping[int, Line]
    """By broker."""

    @property
    def activity(self) -> tuple[int, int]:
        """How much happened, for comparison: elections and changes of the ISR, then records."""
        points = sum(map(len, self.log_ends.values()))
        return (len(self.leader_epochs) + len(self.isr), points)


@dataclass(frozen=True, slots=True)
class RunSeries:
    origin_ns: int
    """The time of the run's first event."""
    duration_s: float
    faults: tuple[Fault, ...]
    phases: tuple[Phase, ...]
    reigns: tuple[Reign, ...]
    partitions: tuple[PartitionSeries, ...]
    down: Mapping[int, tuple[tuple[float, float], ...]]
    """By broker, from when to when its process did not run, in seconds."""

    def running(self, node: int) -> list[tuple[float, float]]:
        """Return from when to when a broker's process ran."""
        edges = [0.0, *(edge for span in self.down.get(node, ()) for edge in span), self.duration_s]
        return list(zip(edges[::2], edges[1::2], strict=True))


def read(history: History) -> Segment:
    """Return the timed rows of a history with the columns that reports need."""
    rows = Segment.starting_at(history.table(COLUMNS), 0)
    return rows.where(rows.numbers("time") >= 0)


def extract(rows: Segment) -> RunSeries:
    """Return all series of these rows (as ``read`` gives them)."""
    time = rows.numbers("time")
    origin = int(time.min()) if len(time) else 0
    duration_s = (int(time.max()) - origin) / NS if len(time) else 0.0
    faults = _faults(rows, origin)
    return RunSeries(
        origin_ns=origin,
        duration_s=duration_s,
        faults=faults,
        phases=_phases(rows, origin, duration_s),
        reigns=_reigns(rows, origin),
        partitions=_partitions(rows, origin),
        down=_down(rows, faults, origin, duration_s),
    )


def _down(
    rows: Segment, faults: tuple[Fault, ...], origin: int, duration_s: float
) -> dict[int, tuple[tuple[float, float], ...]]:
    """By broker, when its process did not run.

    That is the time before each restart, from its last trace, or the last fault that struck it after that. A broker
    that a fault has ended, and that did not start again, is down to the end.
    """
    starts: dict[str, list[int]] = {}
    for event in _events(rows, Kind.BROKER_STARTED):
        starts.setdefault(event.process, []).append(event.time)
    down = {}
    for process, times in starts.items():
        traced = rows.where(rows.is_word("process", [process])).numbers("time")
        begun_s = [fault.begun_s for fault in faults if process in fault.targets]
        spans = [
            (_end_before(start, traced, begun_s, origin), (start - origin) / NS)
            for start in times[1:]
        ]
        last_start_s = (times[-1] - origin) / NS
        ended_s = [fault.begun_s for fault in faults if process in fault.ended]
        if deadly_s := [time_s for time_s in ended_s if time_s > last_start_s]:
            spans.append((min(deadly_s), duration_s))
        down[int(process.removeprefix("broker-"))] = tuple(spans)
    return down


def _end_before(start: int, traced: Numbers, begun_s: list[float], origin: int) -> float:
    """When the process ended that ran before this start, in seconds."""
    start_s = (start - origin) / NS
    last_s = (int(traced[traced < start].max()) - origin) / NS
    return max([last_s, *(begin_s for begin_s in begun_s if last_s < begin_s < start_s)])


def _events(rows: Segment, *kinds: Kind) -> list[Event]:
    """The events of rare kinds, by time."""
    events = [event for _, event in rows.only(kinds).events()]
    return sorted(events, key=lambda event: (event.time, event.seq))


def _faults(rows: Segment, origin: int) -> tuple[Fault, ...]:
    kinds = (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED, Kind.FAULT_SKIPPED, Kind.FAULT_HEALED)
    faults: dict[int, Fault] = {}
    for event in _events(rows, *kinds):
        number = -1 if event.fault_id is None else event.fault_id
        fault = faults.get(number, Fault(number, event.fault or "?"))
        at_s = (event.time - origin) / NS
        targets = tuple(event.targets or fault.targets)
        match event.kind:
            case Kind.FAULT_INVOKE:
                fault = replace(fault, targets=targets, invoked_s=at_s)
            case Kind.FAULT_APPLIED:
                fault = replace(
                    fault,
                    targets=targets,
                    start_s=at_s,
                    effect=event.effect or "",
                    measured=event.detail or "",
                )
            case Kind.FAULT_SKIPPED:
                fault = replace(fault, invoked_s=at_s, skipped=event.error or "no reason given")
            case _:
                fault = replace(fault, targets=targets, stop_s=at_s, healed=event.effect or "")
        faults[number] = fault
    return tuple(faults.values())


def _phases(rows: Segment, origin: int, duration_s: float) -> tuple[Phase, ...]:
    starts = [
        ((event.time - origin) / NS, event.phase or "?") for event in _events(rows, Kind.PHASE)
    ]
    stops = [*(at_s for at_s, _ in starts), duration_s][1:]
    return tuple(
        Phase(name, start_s, stop_s) for (start_s, name), stop_s in zip(starts, stops, strict=True)
    )


def _reigns(rows: Segment, origin: int) -> tuple[Reign, ...]:
    return tuple(
        Reign(
            (event.time - origin) / NS,
            event.controller_epoch,
            -1 if event.node is None else event.node,
            resigned=event.kind == Kind.CONTROLLER_RESIGNED,
        )
        for event in _events(rows, Kind.CONTROLLER_ELECTED, Kind.CONTROLLER_RESIGNED)
        if event.controller_epoch is not None
    )


def _partitions(rows: Segment, origin: int) -> tuple[PartitionSeries, ...]:
    traced = rows.only(_PARTITION_KINDS)
    partitions = [
        _partition(f"{topic}-{partition}", own, origin)
        for (topic, partition), own in traced.by("topic", "partition")
        if topic is not None and partition is not None
    ]
    return tuple(partitions)


def _partition(name: str, rows: Segment, origin: int) -> PartitionSeries:
    elections = _named(rows, Kind.LEADER_ELECTED) or _named(rows, Kind.BECOME_LEADER)
    changes = sorted(
        (*elections, *_named(rows, Kind.ISR_CHANGE_COMMITTED)), key=lambda event: event.time
    )
    marks = rows.where(rows.is_kind(Kind.HIGH_WATERMARK))
    ends = rows.where(rows.is_kind(*_LOG_ENDS) & (rows.numbers("log_end_offset") >= 0))
    nodes = ends.numbers("node")
    return PartitionSeries(
        name=name,
        leader_epochs=Line(
            np.array([(event.time - origin) / NS for event in elections], dtype=np.float64),
            np.array([event.leader_epoch for event in elections], dtype=np.int64),
        ),
        leaders=tuple(-1 if (leader := _leader(event)) is None else leader for event in elections),
        isr=tuple(
            ((event.time - origin) / NS, tuple(event.isr))
            for event in changes
            if event.isr is not None
        ),
        high_watermark=_line(marks, "high_watermark", origin),
        log_ends={
            int(node): _line(ends.where(nodes == node), "log_end_offset", origin)
            for node in np.unique(nodes)
            if node >= 0
        },
    )


def _named(rows: Segment, kind: Kind) -> list[Event]:
    """Elections or ISR changes that carry a leader epoch, in the order of the rows (by time)."""
    events = rows.where(rows.is_kind(kind)).events("leader", "leader_epoch", "isr", "node")
    return [event for _, event in events if event.leader_epoch is not None]


def _leader(event: Event) -> int | None:
    return event.node if event.kind == Kind.BECOME_LEADER else event.leader


def _line(rows: Segment, column: str, origin: int) -> Line:
    return Line((rows.numbers("time") - origin) / NS, rows.numbers(column))
