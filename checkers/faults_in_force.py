"""Which faults were in force when something happened.

A fault that was applied is in force from its ``fault-invoke`` (it is applied when its effect has been measured, a
rolling restart only when it is over) to its ``fault-healed``, or to the end of the history.
Events of ZooKeeper's log have no time; theirs is bracketed by the events of brokers that traced a
zxid: not after the first that traced this zxid or a later one, and taken to be not before the one
that traced the zxid before it.

Limit: that second bound is a guess. A broker that traces late makes it too late, and a fault that
was over by then is not named. No verdict depends on it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind
from nemesis.history.reader import History
from nemesis.history.row_group import Uniform

FOREVER_NS = 2**63 - 1
_UNSET = Uniform(None)
_FAULTS = (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED, Kind.FAULT_HEALED)


@dataclass(frozen=True, slots=True)
class Interval:
    name: str
    start_ns: int
    stop_ns: int


class FaultsInForce:
    """The intervals of all faults of a history, and the times of its zxids."""

    def __init__(self, intervals: list[Interval], zxid_times: list[tuple[int, int]]) -> None:
        self._intervals = sorted(intervals, key=lambda interval: interval.start_ns)
        self._zxids = [zxid for zxid, _ in sorted(zxid_times)]
        self._times = [time for _, time in sorted(zxid_times)]

    @classmethod
    def of(cls, history: History) -> FaultsInForce:
        columns = ["time", "process", "kind", "seq", "fault", "fault_id", "targets", "zxid"]
        begun: dict[int, int] = {}
        open_faults: dict[int, Interval] = {}
        intervals: list[Interval] = []
        zxid_times: list[tuple[int, int]] = []
        for group in history.row_groups:
            segment = Segment.of(group, columns)
            if segment.columns.uniform("zxid") != _UNSET:
                time, zxid = segment.numbers("time"), segment.numbers("zxid")
                traced = (time >= 0) & (zxid > 0)
                zxid_times += zip(zxid[traced].tolist(), time[traced].tolist(), strict=True)
            for _, event in segment.only(_FAULTS).events():
                if event.fault_id is None:
                    continue
                if event.kind == Kind.FAULT_INVOKE:
                    begun[event.fault_id] = event.time
                elif event.kind == Kind.FAULT_APPLIED:
                    name = f"{event.fault} on {', '.join(event.targets or ['?'])}"
                    start = begun.get(event.fault_id, event.time)
                    open_faults[event.fault_id] = Interval(name, start, FOREVER_NS)
                elif event.fault_id in open_faults:
                    over = open_faults.pop(event.fault_id)
                    intervals.append(Interval(over.name, over.start_ns, event.time))
        return cls([*intervals, *open_faults.values()], zxid_times)

    def during(self, events: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """The names and targets of faults in force at any of these events, in the order in which they began."""
        spans = [self._span(event) for event in events]
        names = [
            interval.name
            for interval in self._intervals
            if any(start <= interval.stop_ns and interval.start_ns <= stop for start, stop in spans)
        ]
        return tuple(dict.fromkeys(names))

    def _span(self, event: Mapping[str, Any]) -> tuple[int, int]:
        """From when to when the event may have happened; an empty span if nothing is known."""
        time, zxid = event.get("time", -1), event.get("zxid")
        if time >= 0:
            return time, time
        if zxid is None or not self._zxids:
            return FOREVER_NS, -1
        position = bisect_left(self._zxids, zxid)
        start = self._times[position - 1] if position else 0
        stop = self._times[position] if position < len(self._times) else FOREVER_NS
        return min(start, stop), max(start, stop)
