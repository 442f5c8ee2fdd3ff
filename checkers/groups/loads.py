"""When brokers may have loaded their groups again: each time that they began to lead a partition of committed offsets.

A coordinator that loads accepts every heartbeat without a look at the group, as Kafka's does. It also has members again
that had left, because a member that leaves is not written before the next generation is. So a heartbeat, and a request
of a member that has left, count only if the broker has not loaded in between. Only traces of brokers show that: without
them nothing is concluded.

A broker ceases to coordinate when it follows. Kafka's looks whether it has the partition of a group, and then for the
group; if it unloads its groups in between, it answers UNKNOWN_MEMBER_ID to a member. Where a broker does not trace, the
metadata show whether it ever ceased to lead such a partition, and not when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.groups.group_operations import Operation
from nemesis.checkers.losses import OFFSETS_TOPIC
from nemesis.history.events import Kind

CEASES: Final = frozenset({Kind.BECOME_FOLLOWER, Kind.REPLICA_STOPPED})
"""What a broker traces when it ceases to lead, among others."""
_STATES: Final = f"{znodes.TOPICS}{OFFSETS_TOPIC}/partitions/"


class Loads:
    """By broker the times (ns) at which it began to lead a partition of committed offsets."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._times: dict[int | None, list[int]] = defaultdict(list)
        known = sorted(rows, key=lambda item: item[1].time)
        for _, event in known:
            if event.kind == Kind.BECOME_LEADER and event.topic == OFFSETS_TOPIC:
                self._times[event.node].append(event.time)
        self._ceased: dict[int | None, list[int]] = defaultdict(list)
        for _, event in known:
            if event.kind in CEASES and event.topic == OFFSETS_TOPIC:
                self._ceased[event.node].append(event.time)
        self._former = frozenset(_former_leaders(known))

    def none_between(self, known: Operation, request: Operation) -> bool:
        """Return whether the broker of both has loaded nothing since it was sent the first one, for certain."""
        times = self._times.get(request.event.node, [])
        index = bisect_right(times, request.ended)
        return index > 0 and times[index - 1] < known.began

    def latest(self, node: int | None, time: int) -> int | None:
        """Return when a broker last began to load groups, up to ``time`` (ns); None if it is not known to have."""
        times = self._times.get(node, [])
        index = bisect_right(times, time)
        return times[index - 1] if index else None

    def may_unload(self, node: int | None, start: int, stop: int) -> bool:
        """Return whether a broker may have ceased to lead a partition after ``start`` and up to ``stop`` (ns)."""
        if node not in self._times:
            return node in self._former
        return any(start < time <= stop for time in self._ceased.get(node, ()))

    def between(self, node: int | None, start: int, stop: int) -> list[int]:
        """Return when a broker began to load groups after ``start`` and up to ``stop`` (ns)."""
        times = self._times.get(node, [])
        return times[bisect_right(times, start) : bisect_right(times, stop)]


def _former_leaders(rows: Iterable[Row]) -> Iterator[int]:
    """Yield the brokers that the metadata have as leaders of a partition of committed offsets, and later not."""
    leaders: dict[str, int | None] = {}
    for _, event in znodes.changes(rows):
        path = event.path or ""
        if not path.startswith(_STATES):
            continue
        former = leaders.get(path)
        leaders[path] = event.leader
        if former is not None and former != event.leader:
            yield former
