"""When ZooKeeper's transactions had happened: its log has an order and no time that could be compared with brokers'.

A transaction had certainly happened when a broker first traced its zxid or a later one. It certainly had not happened
yet when a broker was about to send a write that ZooKeeper then ordered no later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Kind


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


class ZxidStarts:
    """Up to when ZooKeeper's transactions had not happened yet."""

    def __init__(self, rows: Sequence[Row]) -> None:
        sent = sorted(_sent(rows))
        self._zxids = [zxid for zxid, _ in sent]
        self._times = list(accumulate((time for _, time in sent), max))

    def not_before(self, zxid: int) -> int | None:
        """Return the last time at which this transaction had certainly not happened yet; None if no write tells."""
        index = bisect_right(self._zxids, zxid)
        return self._times[index - 1] if index else None


def _sent(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yield the zxid of each traced write, and when it was about to be sent at the earliest."""
    kinds = (Kind.ZNODE_ATTEMPT, Kind.ZNODE_OUTCOME)
    traced = (event for _, event in rows if event.kind in kinds)
    attempts: dict[tuple[str, int | None, str | None], deque[int]] = defaultdict(deque)
    for event in sorted(traced, key=lambda event: (event.process, event.incarnation, event.seq)):
        waiting = attempts[event.process, event.incarnation, event.path]
        if event.kind == Kind.ZNODE_ATTEMPT:
            waiting.append(event.time)
        elif waiting:
            time = waiting.popleft()
            if event.zxid:
                yield event.zxid, time
