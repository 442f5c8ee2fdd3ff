"""How much of one partition's log some leader had declared committed by when.

A leader traces its high watermark before anybody can see it, and a follower knows only what a leader has told it. So
whatever a broker hands out, the highest high watermark traced by then covers it, whoever leads now. A log that is
opened counts with what it has checkpointed: it may be older than the history.

Limit: if a broker that leads by what its followers trace has traced nothing itself, nothing is known.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

STATED = frozenset({Kind.HIGH_WATERMARK, Kind.BECOME_LEADER, Kind.LOG_LOADED})


BEFORE = np.iinfo(np.int64).min
"""A time before all others."""


class Mark(NamedTuple):
    """A high watermark that some leader had traced."""

    value: int
    row: int


@dataclass(frozen=True, slots=True)
class HighWatermarks:
    """The highest so far, after each event that states one."""

    times: list[int]
    highest: list[int]
    rows: list[int]
    """Of the event that states the highest."""

    def by(self, time: int) -> tuple[int, int] | None:
        """The highest that was traced up to then, and the row that says so; None if none was."""
        index = bisect_right(self.times, time) - 1
        return None if index < 0 else (self.highest[index], self.rows[index])


def high_watermarks(segment: Segment) -> HighWatermarks | None:
    """Those of one partition; None if nothing is known."""
    stated = segment.where(segment.is_kind(*STATED))
    if not len(stated) or _silent_leaders(segment, stated):
        return None
    return rising(stated)


def is_traced(segment: Segment) -> bool:
    """Whether any broker traces what it does with the partition."""
    return bool(segment.is_kind(*STATED, Kind.BECOME_FOLLOWER).any())


def rising(stated: Segment, before: Mark | None = None) -> HighWatermarks:
    """The highest so far of these rows, and of one that was stated before them."""
    times, rows, marks = stated.numbers("time"), stated.rows, stated.numbers("high_watermark")
    if before is not None:
        times, rows, marks = (
            np.concatenate(([first], others))
            for first, others in ((BEFORE, times), (before.row, rows), (before.value, marks))
        )
    highest = np.maximum.accumulate(marks)
    first = np.searchsorted(highest, highest)
    return HighWatermarks(times.tolist(), highest.tolist(), rows[first].tolist())


def _silent_leaders(segment: Segment, stated: Segment) -> set[int]:
    return followed_leaders(segment) - set(np.unique(stated.numbers("node")).tolist())


def followed_leaders(segment: Segment) -> set[int]:
    """The nodes that followers were told to follow."""
    followers = segment.where(segment.is_kind(Kind.BECOME_FOLLOWER))
    return set(np.unique(followers.numbers("leader")).tolist()) - {-1}
