"""Consumer groups over time: assignors, generations, rebalances, and which member owned each partition.

All of it comes from what the members recorded, so that it is the same for every target.
``templates/consumer_groups.html`` draws it.
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
from nemesis.reports.run_axis import Bar, Lane, RunAxis, axis_ticks, fault_bars, lane_of
from nemesis.reports.series import NS, RunSeries

MAX_GROUPS: Final = 20
"""Those with the most generations are drawn."""
MAX_PARTITIONS: Final = 40
"""Of one group: those with the most owners are drawn."""
SHADES: Final = 8
"""Colours of members, in the order in which they first owned something."""
_KINDS: Final = (Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO, Kind.ASSIGNED, Kind.REVOKED)


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
    axis = RunAxis(run.origin_ns, run.duration_s)
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
        fault_bars(run, axis),
        axis_ticks(run.duration_s),
        len(joined) - len(drawn),
    )


def _by_joins(named: tuple[str, Group]) -> int:
    """For sorting: the group of the most generations first."""
    return -len({join.generation for join in named[1].ok(JOIN)})


def _group(name: str, group: Group, axis: RunAxis, shades: dict[str, int]) -> GroupPanel:
    rebalances = _rebalances(group)
    owners = _by_partition(group.ownerships)
    births = _births(group)
    busiest = sorted(owners, key=lambda partition: -len(owners[partition]))[:MAX_PARTITIONS]
    lanes = [
        lane_of("generations", _generations(rebalances, axis)),
        lane_of("rebalances", (item.bar(axis) for item in rebalances)),
    ]
    lanes += [
        lane_of(partition, (_owned(item, axis, shades, births) for item in owners[partition]))
        for partition in sorted(busiest)
    ]
    summary = "; ".join([*_assignors(group), _summary(rebalances)])
    return GroupPanel(name, summary, tuple(lanes), len(owners) - len(busiest))


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

    def bar(self, axis: RunAxis) -> Bar:
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


def _generations(rebalances: list[_Rebalance], axis: RunAxis) -> Iterable[Bar]:
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
    item: Ownership, axis: RunAxis, shades: dict[str, int], births: dict[str, list[int]]
) -> Bar:
    """What a member did not give up ends when its process joins as another member: it had crashed."""
    event = item.event
    reborn = (time for time in births.get(event.process, ()) if time > event.time)
    label = f"{event.process} in generation {event.generation}"
    return axis.bar(
        event.time, min(item.ended, next(reborn, item.ended)), label, shades[event.process]
    )
