"""How far the logs of a partition's replicas reached, and when.

The ends that brokers traced, thinned to one for each broker, role and millisecond, so that a summary grows with the
time that a history covers and not with the number of its records. The thinned ends err on one side only: a leader's
end counts from the last event of its millisecond, any other end from the beginning of its millisecond. So a leader is
rather too short than too long at any time, and a follower rather too long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.segment import Mask, Numbers, Segment
from nemesis.history.events import Kind

COLUMNS: Final = ("node", "role", "log_end_offset")
MS: Final = 1_000_000
_LEADER: Final = "leader"


class Steps(NamedTuple):
    """The highest end of a log so far, at the times at which it was traced. Arrays of one length, in order of time."""

    time: Numbers
    """In ns."""
    end: Numbers
    """In records; it never falls."""
    row: Numbers
    """The row of an event that reports the end."""


class Ends(NamedTuple):
    """Ends of logs of one partition. Arrays of one length, in history order for each broker and role."""

    time: Numbers
    end: Numbers
    row: Numbers
    node: Numbers
    is_leader: Mask
    """Whether the broker appended as the leader."""

    def of_leader(self, node: int, start: int, stop: int) -> Steps:
        """Return what this broker appended as the leader between these times."""
        return self._steps(
            (self.node == node) & self.is_leader & (self.time >= start) & (self.time <= stop)
        )

    def of_follower(self, node: int, start: int) -> Steps:
        """Return the ends of this broker's logs from the millisecond of ``start`` on."""
        return self._steps((self.node == node) & ~self.is_leader & (self.time >= start // MS * MS))

    def _steps(self, mask: Mask) -> Steps:
        end, row = self.end[mask], self.row[mask]
        return Steps(self.time[mask], np.maximum.accumulate(end), row) if len(end) else _NO_STEPS


_NOTHING: Final[Numbers] = np.zeros(0, dtype=np.int64)
_NO_STEPS: Final = Steps(_NOTHING, _NOTHING, _NOTHING)
NO_ENDS: Final = Ends(_NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0, dtype=np.bool_))


def ends(part: Segment) -> Ends:
    """Return the thinned ends that these rows of one partition report; the rows are all of ``LOG_END_KINDS``."""
    if not len(part):
        return NO_ENDS
    return thinned(
        Ends(
            part.numbers("time"),
            part.numbers("log_end_offset"),
            part.rows,
            part.numbers("node"),
            part.is_word("role", {_LEADER}),
        )
    )


def join(a: Ends, b: Ends) -> Ends:
    """Join the ends of two neighbouring stretches, ``a`` before ``b``. Where they meet, it may need thinning again."""
    return Ends(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))


def thinned(raw: Ends) -> Ends:
    """Return one end for each broker, role and millisecond; thinning the parts before makes no difference."""
    if not len(raw.time):
        return raw
    bucket = raw.time // MS
    # Stable, so the rows of one group keep the order of the history, which is that of time.
    permutation = np.lexsort((bucket, raw.is_leader, raw.node))
    groups = np.stack([bucket, raw.is_leader, raw.node])[:, permutation]
    is_first = np.append(True, (np.diff(groups) != 0).any(axis=0))
    firsts = np.flatnonzero(is_first)
    lasts = permutation[np.append(firsts[1:], len(permutation)) - 1]
    is_leader = raw.is_leader[lasts]
    return Ends(
        np.where(is_leader, raw.time[lasts], bucket[lasts] * MS),
        np.maximum.reduceat(raw.end[permutation], firsts),
        raw.row[lasts],
        raw.node[lasts],
        is_leader,
    )


def leader_steps(began: Row, until: int, traced: Ends) -> Steps:
    """Return the ends of a leader's log from the event with which it began to lead up to a time, in ns.

    The first one is the end with which it began.
    """
    row, event = began
    appended = traced.of_leader(event.node or 0, event.time, until)
    return Steps(
        np.insert(appended.time, 0, event.time),
        np.maximum.accumulate(np.insert(appended.end, 0, event.log_end_offset or 0)),
        np.insert(appended.row, 0, row),
    )


def follower_steps(
    member: int, leader_epoch: int | None, rows: Iterable[Row], traced: Ends
) -> Steps:
    """Return the highest ends of a replica's log since it began to follow in a leader epoch; −1 before that.

    The rows hold all of its events of kind ``become-follower``.
    """
    follows = (
        item
        for item in rows
        if item[1].kind == Kind.BECOME_FOLLOWER
        and (item[1].node, item[1].leader_epoch) == (member, leader_epoch)
    )
    first = next(follows, None)
    if first is None:
        return Steps(np.array([0]), np.array([-1]), np.array([-1]))
    row, event = first
    since = traced.of_follower(member, event.time)
    head = (0, event.time // MS * MS)
    return Steps(
        np.concatenate([head, since.time]),
        np.maximum.accumulate(np.concatenate([(-1, event.log_end_offset or 0), since.end])),
        np.concatenate([(-1, row), since.row]),
    )
