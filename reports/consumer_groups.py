"""Consumer groups over time: assignors, generations, rebalances, and which member owned each partition.

All of it comes from what the members recorded, so that it is the same for every target. Shares are positions on the
time axis of the whole run, from 0 to ``WIDTH``; ``templates/consumer_groups.html`` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

from nemesis.checkers.framework.segment import ALWAYS, Segment
from nemesis.checkers.groups.group_operations import (
    COLUMNS,
    JOIN,
    SYNC,
    WORKLOADS,
    Group,
    Operation,
    Ownership,
    groups,
)
from nemesis.history.events import Kind
from nemesis.history.reader import History
from nemesis.history.run_directory import RunInfo
from nemesis.reports.liveness import lasted
from nemesis.reports.series import NS, RunSeries

WIDTH: Final = 1_000
"""The right end of the time axis."""
SHORTEST: Final = 1.0
"""What is shorter is drawn with this width."""
MAX_GROUPS: Final = 20
"""Those with the most generations are drawn."""
MAX_PARTITIONS: Final = 40
"""Of one group: those with the most owners are drawn."""
SHADES: Final = 8
"""Colours of members, in the order in which they first owned something."""
_KINDS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO, Kind.ASSIGNED, Kind.REVOKED)
_TICK_STEPS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600)
_MAX_TICKS: Final = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasts: ``left`` and ``width`` on the time axis."""

    left: float
    width: float
    label: str
    shade: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """Bars on one line, below its name."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class GroupPanel:
    """What is drawn of one group."""

    name: str
    summary: str
    lanes: tuple[Lane, ...]
    left_out: int
    """Partitions that are not drawn."""


@dataclass(frozen=True, slots=True)
class GroupsPanel:
    groups: tuple[GroupPanel, ...]
    members: tuple[tuple[str, int], ...]
    """Processes of members and their shades."""
    bands: tuple[Bar, ...]
    """Faults, behind every lane."""
    ticks: tuple[tuple[float, str], ...]
    left_out: int
    """Groups that are not drawn."""


def groups_panel(info: RunInfo, history: History, run: RunSeries) -> GroupsPanel | None:
    """Return what the report shows of groups; None of a run without them. Raises HistoryError."""
    if info.config.get("workload", {}).get("name") not in WORKLOADS:
        return None
    rows = Segment.starting_at(history.table((*ALWAYS, *COLUMNS, "assignor")), 0)
    known = groups(rows.only(_KINDS).events())
    axis = _Axis(run.origin_ns, run.duration_s)
    joined = {name: group for name, group in known.items() if group.ok(JOIN)}
    drawn = dict(sorted(sorted(joined.items(), key=_by_joins)[:MAX_GROUPS]))
    if not drawn:
        return None
    owners = sorted(
        (item for group in drawn.values() for item in group.ownerships),
        key=lambda item: item.event.time,
    )
    processes = dict.fromkeys(item.event.process for item in owners)
    shades = {process: number % SHADES for number, process in enumerate(processes)}
    return GroupsPanel(
        tuple(_group(name, group, axis, shades) for name, group in drawn.items()),
        tuple(sorted(shades.items())),
        tuple(_faults(run, axis)),
        _ticks(run.duration_s),
        len(joined) - len(drawn),
    )


def _by_joins(named: tuple[str, Group]) -> int:
    """For sorting: the group of the most generations first."""
    return -len({join.generation for join in named[1].ok(JOIN)})


@dataclass(frozen=True, slots=True)
class _Axis:
    origin_ns: int
    duration_s: float

    def seconds(self, time_ns: int) -> float:
        return min((time_ns - self.origin_ns) / NS, self.duration_s)

    def bar(self, start_ns: int, stop_ns: int, label: str, shade: int = 0) -> Bar:
        return self.bar_s(self.seconds(start_ns), self.seconds(stop_ns), label, shade)

    def bar_s(self, start_s: float, stop_s: float, label: str, shade: int = 0) -> Bar:
        scale = WIDTH / max(self.duration_s, 1e-9)
        width = max((stop_s - start_s) * scale, SHORTEST)
        said = f"{label}: {start_s:,.2f} to {stop_s:,.2f} s"
        return Bar(round(start_s * scale, 1), round(width, 1), said, shade)


def _group(name: str, group: Group, axis: _Axis, shades: dict[str, int]) -> GroupPanel:
    rebalances = _rebalances(group)
    owners = _by_partition(group.ownerships)
    births = _births(group)
    busiest = sorted(owners, key=lambda partition: -len(owners[partition]))[:MAX_PARTITIONS]
    lanes = [
        _lane("generations", _generations(rebalances, axis)),
        _lane("rebalances", (item.bar(axis) for item in rebalances)),
    ]
    lanes += [
        _lane(partition, (_owned(item, axis, shades, births) for item in owners[partition]))
        for partition in sorted(busiest)
    ]
    summary = "; ".join([*_assignors(group), _summary(rebalances)])
    return GroupPanel(name, summary, tuple(lanes), len(owners) - len(busiest))


def _lane(name: str, bars: Iterable[Bar]) -> Lane:
    """Leave out the short bars that would lie on each other: a lane has at most ``WIDTH`` of them."""
    kept: list[Bar] = []
    for bar in sorted(bars, key=lambda bar: bar.left):
        if not kept or bar.width > SHORTEST or bar.left >= kept[-1].left + SHORTEST:
            kept.append(bar)
    return Lane(name, tuple(kept))


# Rebalances


@dataclass(frozen=True, slots=True)
class _Rebalance:
    """From the first JoinGroup of a generation to the last answer to a SyncGroup of it."""

    generation: int
    members: int
    start_ns: int
    stop_ns: int
    coordinators: tuple[int, ...]

    @property
    def label(self) -> str:
        members = f"{self.members} member{'' if self.members == 1 else 's'}"
        return f"generation {self.generation}, {members}"

    def bar(self, axis: _Axis) -> Bar:
        return axis.bar(self.start_ns, self.stop_ns, f"into {self.label}")


def _rebalances(group: Group) -> list[_Rebalance]:
    """Return them by their ends. A generation that begins again after a failover counts once."""
    joins: dict[int, list[Operation]] = {}
    for join in group.ok(JOIN):
        joins.setdefault(join.generation, []).append(join)
    ends: dict[int, int] = {}
    for sync in group.ok(SYNC):
        ends[sync.generation] = max(ends.get(sync.generation, 0), sync.ended)
    rebalances = [
        _Rebalance(
            generation,
            len({join.event.member for join in own}),
            min(join.began for join in own),
            max(ends.get(generation, 0), *(join.ended for join in own)),
            tuple(sorted({join.event.node for join in own if join.event.node is not None})),
        )
        for generation, own in joins.items()
    ]
    return sorted(rebalances, key=lambda item: item.stop_ns)


def _generations(rebalances: list[_Rebalance], axis: _Axis) -> Iterable[Bar]:
    """Each from the end of its rebalance to that of the next one; the shades alternate."""
    stops = [item.stop_ns for item in rebalances[1:]]
    end_ns = axis.origin_ns + int(axis.duration_s * NS)
    for number, (item, stop_ns) in enumerate(zip(rebalances, [*stops, end_ns], strict=True)):
        brokers = ", ".join(f"broker-{node}" for node in item.coordinators)
        label = f"{item.label}, coordinator {brokers}"
        yield axis.bar(item.stop_ns, stop_ns, label, number % 2)


def _assignors(group: Group) -> list[str]:
    """Return which assignors the members have agreed on, in a list of one text; nothing if no answer names any."""
    agreed = dict.fromkeys(join.event.assignor for join in group.ok(JOIN))
    names = [name for name in agreed if name is not None]
    return [f"assignor {', then '.join(names)}"] if names else []


def _summary(rebalances: list[_Rebalance]) -> str:
    lengths_ms = [(item.stop_ns - item.start_ns) / 1e6 for item in rebalances]
    return (
        f"{len(rebalances):,} generations; rebalances took {lasted(median(lengths_ms))} in the median,"
        f" {lasted(max(lengths_ms))} at most"
    )


# Owners


def _by_partition(ownerships: Iterable[Ownership]) -> dict[str, list[Ownership]]:
    owners: dict[str, list[Ownership]] = {}
    for item in ownerships:
        owners.setdefault(f"{item.event.topic}-{item.event.partition}", []).append(item)
    return owners


def _births(group: Group) -> dict[str, list[int]]:
    """By process, when it joined as a new member: without a member id."""
    births: dict[str, list[int]] = {}
    for operation in group.operations:
        asked = operation.invoked[1]
        if asked.f == JOIN and asked.member is None:
            births.setdefault(asked.process, []).append(asked.time)
    return births


def _owned(
    item: Ownership, axis: _Axis, shades: dict[str, int], births: dict[str, list[int]]
) -> Bar:
    """What a member did not give up ends when its process joins as another member: it had crashed."""
    event = item.event
    reborn = (time for time in births.get(event.process, ()) if time > event.time)
    label = f"{event.process} in generation {event.generation}"
    return axis.bar(
        event.time, min(item.ended, next(reborn, item.ended)), label, shades[event.process]
    )


# The time axis


def _faults(run: RunSeries, axis: _Axis) -> Iterable[Bar]:
    for fault in run.faults:
        if fault.start_s is not None:
            start_s = fault.start_s if fault.invoked_s is None else fault.invoked_s
            stop_s = run.duration_s if fault.stop_s is None else fault.stop_s
            yield axis.bar_s(start_s, stop_s, fault.label)


def _ticks(duration_s: float) -> tuple[tuple[float, str], ...]:
    """Return positions in percent and texts."""
    step = next((step for step in _TICK_STEPS_S if duration_s / step <= _MAX_TICKS), 7_200)
    count = int(duration_s / step)
    return tuple(
        (round(100 * number * step / duration_s, 2), f"{number * step:,} s")
        for number in range(count + 1)
        if duration_s
    )
