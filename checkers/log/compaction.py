"""What compaction may have taken: records that a later one of the same key supersedes.

A record may be gone at some time if by then a cleaner had been through its offset, if a record of its key is committed
at a larger offset, and if such a record had been sent by that time. Of a send whose outcome nobody knows the offset is
not known: it may have superseded the record, and have been superseded itself; or, if nobody has read the log to its
end, be the last one of its key. So the last record of a key never may be gone, and no record for which nothing else was
sent in time.

A record without a value (a tombstone) may be gone without a later one of its key, if two compactions have passed its
offset since it was sent: the first one sets its delete horizon, a later one removes it. Such a tombstone may also be
the reason why older records of its key are gone, though no reader has seen it.

Keys are those of the sends: a send names one if the log of its topic is compacted. How far cleaners have come the
brokers trace; where they trace nothing, it may be anywhere.

Limit: whether the delete horizon had passed by then is judged by ``tombstones-kept``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

EVERYWHERE = 2**63 - 1
NEVER = 2**63 - 1
UNKNOWN = -1
TOMBSTONE_PASSES = 2
"""A compaction that sets the delete horizon, and one that removes the tombstone."""


class Sent(NamedTuple):
    """A send, whatever came of it."""

    value: int
    invoke_time: int


@dataclass(frozen=True, slots=True)
class Reach:
    """Up to where cleaners had come, by time."""

    times: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """The largest of these by that time, exclusive."""
    ranges: list[tuple[int, int]] = field(default_factory=list)
    """The first and the last offset of the segments that were compacted at each time."""

    def passes(self, offset: int, since: int, until: int) -> int:
        """Return how many compactions passed the offset in that time."""
        first, last = bisect_right(self.times, since), bisect_right(self.times, until)
        return sum(start <= offset <= end for start, end in self.ranges[first:last])

    def compactions(self, since: int) -> int:
        """Return how many compactions there were after that time, of any segments."""
        return len(self.ranges) - bisect_right(self.times, since)

    def by(self, time: int) -> int:
        index = bisect_right(self.times, time)
        return self.offsets[index - 1] if index > 0 else 0


class _Key:
    """What is known of the records with one key."""

    def __init__(
        self, sends: list[tuple[int, int]], hidden: Iterable[int], *, is_read_to_end: bool
    ) -> None:
        """``sends`` are (committed offset or ``UNKNOWN``, time of the invocation).

        ``hidden`` are the invocations of tombstones of unknown offset that may be gone before a reader came.
        """
        self._earliest_hidden = min(hidden, default=NEVER)
        self._is_read_to_end = is_read_to_end
        known = sorted(send for send in sends if send[0] != UNKNOWN)
        self._offsets = [offset for offset, _ in known]
        later = list(accumulate((time for _, time in reversed(known)), min))
        self._earliest_from = [*reversed(later), NEVER]
        """The earliest invocation of those from a place in ``_offsets`` on."""
        self._earliest_unknown = min((t for offset, t in sends if offset == UNKNOWN), default=NEVER)

    def supersedes(self, offset: int, time: int) -> bool:
        behind = bisect_right(self._offsets, offset)
        if behind == len(self._offsets) and self._is_read_to_end:
            return self._earliest_hidden < time
        return min(self._earliest_from[behind], self._earliest_unknown) < time


class Compaction:
    """Of one partition. Without keys nothing may be gone."""

    def __init__(
        self,
        keys: Mapping[int, int],
        sends: Iterable[Sent],
        positions: Iterable[tuple[int, int, int]],
        reach: Reach | None,
        *,
        is_read_to_end: bool,
        tombstones: Collection[int] = frozenset(),
    ) -> None:
        """``keys`` by value; ``positions`` are (offset, value, row) of what is committed, all of it if the log
        ``is_read_to_end``; no ``reach``: anywhere; ``tombstones`` are the values that mean a record without one."""
        self._keys = keys
        self._reach = reach
        self._deletions: dict[int, int] = {}
        """The time of the invocation, by the value of a tombstone."""
        committed = {value: offset for offset, value, _ in positions if value in keys}
        self._committed = sorted((offset, value) for value, offset in committed.items())
        by_key: dict[int, list[tuple[int, int]]] = {}
        hidden: dict[int, list[int]] = {}
        for sent in sends:
            if sent.value not in keys:
                continue
            key, offset = keys[sent.value], committed.get(sent.value, UNKNOWN)
            by_key.setdefault(key, []).append((offset, sent.invoke_time))
            if sent.value in tombstones:
                self._deletions[sent.value] = sent.invoke_time
                if offset == UNKNOWN and self._may_hide(sent.invoke_time):
                    hidden.setdefault(key, []).append(sent.invoke_time)
        self._by_key = {
            key: _Key(key_sends, hidden.get(key, ()), is_read_to_end=is_read_to_end)
            for key, key_sends in by_key.items()
        }

    def may_be_gone(self, offset: int, value: int, time: int) -> bool:
        """Whether the record that was committed there may have been superseded by then, or is a tombstone of which
        its delete horizon may have passed."""
        if value not in self._keys or offset >= self._reached(time):
            return False
        is_superseded = self._by_key[self._keys[value]].supersedes(offset, time)
        return is_superseded or self._may_be_deleted(offset, value, time)

    def may_be_skipped(self, start: int, end: int, time: int) -> bool:
        """Whether a reader may have found nothing from one offset up to the other, exclusive."""
        if not self._keys or end > self._reached(time):
            return False
        first = bisect_left(self._committed, (start, -1))
        last = bisect_left(self._committed, (end, -1))
        return all(self.may_be_gone(*position, time) for position in self._committed[first:last])

    def _may_be_deleted(self, offset: int, value: int, time: int) -> bool:
        if value not in self._deletions:
            return False
        return (
            self._reach is None
            or self._reach.passes(offset, self._deletions[value], time) >= TOMBSTONE_PASSES
        )

    def _may_hide(self, invoke_time: int) -> bool:
        """Whether a tombstone of unknown offset may be gone by the end of the history."""
        return self._reach is None or self._reach.compactions(invoke_time) >= TOMBSTONE_PASSES

    def _reached(self, time: int) -> int:
        return EVERYWHERE if self._reach is None else self._reach.by(time)


def keys_of(segment: Segment) -> dict[int, int]:
    """Return the key of each value that was sent with one."""
    keys = segment.numbers("key")
    invoked = segment.is_kind(Kind.INVOKE) & segment.is_word("f", {"send"})
    sends = segment.where(invoked & (keys >= 0))
    return dict(zip(sends.numbers("value").tolist(), sends.numbers("key").tolist(), strict=True))


def tombstones_of(segment: Segment) -> frozenset[int]:
    """Return the values whose records have none in the log."""
    is_tombstone = [bool(stated) for stated in segment.values("tombstone")]
    sends = segment.where(np.array(is_tombstone, dtype=bool) & segment.is_kind(Kind.INVOKE))
    return frozenset(sends.numbers("value").tolist())


def reach_of(segment: Segment) -> Reach:
    """Return up to where the brokers' cleaners had come."""
    cleaned = segment.where(segment.is_kind(Kind.LOG_CLEANED))
    ends = cleaned.numbers("last_offset") + 1
    ranges = zip(cleaned.numbers("offset").tolist(), (ends - 1).tolist(), strict=True)
    return Reach(
        cleaned.numbers("time").tolist(), np.maximum.accumulate(ends).tolist(), list(ranges)
    )
