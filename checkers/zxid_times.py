"""When ZooKeeper's transactions had happened: its log has an order and no time that could be compared with brokers'.

A transaction is taken to have happened when a broker first traced its zxid or a later one: then it certainly had.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from nemesis.checkers.framework.event_list import Row


class ZxidTimes:
    """When brokers first knew of ZooKeeper's transactions."""

    def __init__(self, rows: Iterable[Row]) -> None:
        traced = sorted(
            (event.zxid, event.time) for _, event in rows if event.time >= 0 and event.zxid
        )
        self._zxids = [zxid for zxid, _ in traced]
        self._times = [time for _, time in traced]
        for index in range(len(traced) - 2, -1, -1):
            self._times[index] = min(self._times[index], self._times[index + 1])

    def known(self, zxid: int | None) -> int | None:
        """Return when a broker first traced this zxid or a later one; None if none did."""
        index = bisect_left(self._zxids, zxid or 0)
        return self._times[index] if index < len(self._times) else None
