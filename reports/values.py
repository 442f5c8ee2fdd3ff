"""One way to write what identifies things: times, sessions with their brokers, and zxids.

Times are seconds since the first event of the run. Numbers of sessions and of ZooKeeper's transactions are
hexadecimal, as ZooKeeper's own logs and tools write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nemesis.history.events import Event
from nemesis.history.reader import History
from nemesis.reports import wording
from nemesis.reports.diagram.gather import ZxidClock, session_owners

NS: Final = 1e9
HEXADECIMAL: Final = frozenset({"zxid", "session"})


@dataclass(frozen=True, slots=True)
class Values:
    """Writes the values of the events of one run."""

    origin_ns: int
    owners: Mapping[int, str]
    """The broker of each ZooKeeper session."""
    clock: ZxidClock

    @classmethod
    def of(cls, history: History, origin_ns: int) -> Values:
        """Read the sessions and zxids of a history. Raises HistoryError when it cannot be read."""
        return cls(origin_ns, session_owners(history), ZxidClock.of(history))

    def time_ns(self, event: Mapping[str, Any]) -> int | None:
        """Return an event's time; of ZooKeeper's events, which have none, the time of the first trace of them."""
        if event.get("time", -1) >= 0:
            return int(event["time"])
        known = {name: event[name] for name in ("process", "kind", "zxid") if name in event}
        return self.clock.time(msgspec.convert({"time": -1, **known}, Event)) if known else None

    def when(self, event: Mapping[str, Any]) -> str:
        """Return an event's time in seconds; with ``≤`` if only the first trace of it has a time."""
        time_ns = self.time_ns(event)
        if time_ns is None:
            return "–"
        bound = "" if event.get("time", -1) >= 0 else "≤ "
        return f"{bound}{(time_ns - self.origin_ns) / NS:,.6f}"

    def columns(self, event: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return (column, value as text) of what an event contains beside time, process and kind."""
        return [
            (name, self.number(name, event[name]) if name in HEXADECIMAL else shown)
            for name, shown in wording.columns(event)
        ]

    def number(self, name: str, value: int) -> str:
        """Return a zxid, or a session with its broker: ``0x100000100000000 (broker-2)``."""
        owner = self.owners.get(value) if name == "session" else None
        return f"{value:#x}" if owner is None else f"{value:#x} ({owner})"
