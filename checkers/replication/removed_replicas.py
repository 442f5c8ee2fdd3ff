"""When a replica was taken away from a broker, so that what it held binds it no longer.

Deleting a topic takes its replicas from everybody, from the moment at which a controller has its partition go to
NonExistent; the next topic of the name has another id. Until the deletion is over a controller may have a broker that
comes back make an empty log. Reassignment moves a partition to other brokers: the one that leaves is taken out of the
ISR, then it deletes its log.
Should it come back it starts with nothing. Only a deletion *after* the ISR was without the broker counts: to delete a
member's log is to lose what was committed. The latest ISR is the one with the highest partition epoch that the
controller or a leader has traced; a leader may trace one late.

Nor does a leader that has not heard of it bind the broker afterwards. Whoever takes a replica away raises the leader
epoch, so a leader of a smaller one, whose last Fetch requests arrive late, counts a log that is gone. A replica that is
not in the ISR needs not be taken out of it, and may be deleted before the epoch rises: until then its leader may have
proposed it for the ISR, and counts it, but only a committed ISR binds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind

COLUMNS: Final = (
    *("node", "isr", "partition_epoch", "leader_epoch", "error"),
    *("step", "from_state", "to_state", "replica"),
)
KINDS: Final = frozenset(
    {
        Kind.REPLICA_STOPPED,
        Kind.LEADER_ELECTED,
        Kind.ISR_CHANGE_COMMITTED,
        Kind.TRANSITION,
    }
)
_DELETED: Final = frozenset({"deleting", "delete"})
"""A broker that is killed in between has said the former only, and its log may be gone."""
_TOPIC_DELETED: Final = (None, "Offline", "NonExistent")
"""The replica, and the states before and after: the last transition of a partition."""
_FOR_GOOD: Final = 1 << 62
"""More than any epoch."""


class Latest(NamedTuple):
    """The latest ISR that is known of."""

    partition_epoch: int
    leader_epoch: int
    isr: frozenset[int]


class Freed(NamedTuple):
    """High watermarks up to ``time`` do not bind, none of a leader of a smaller epoch than ``leader_epoch``, and of
    that epoch only those that found the broker in the committed ISR."""

    time: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Removals:
    """What a segment of one partition's events says; ``join`` of neighbours is what both together say."""

    latest: Latest | None = None
    freed: dict[int, Freed] = field(default_factory=dict)
    """Broker → its last deletion of its log, not being in the ISR."""
    unresolved: dict[int, int] = field(default_factory=dict)
    """Broker → when it deleted its log last, before the segment tells of any ISR."""


def removals(part: Segment) -> Removals:
    """Return those of one partition's rows; needs ``COLUMNS`` and ``KINDS``."""
    joined = Removals()
    for _, event in _rows(part):
        joined = join(joined, _of(event))
    return joined


def join(a: Removals, b: Removals) -> Removals:
    """``a`` comes before ``b``."""
    freed, unresolved = dict(a.freed), dict(a.unresolved)
    for broker, time in b.unresolved.items():
        if a.latest is None:
            unresolved[broker] = time
        elif broker not in a.latest.isr:
            freed[broker] = Freed(time, a.latest.leader_epoch)
    known = [latest for latest in (a.latest, b.latest) if latest is not None]
    return Removals(
        max(known, key=lambda latest: latest.partition_epoch, default=None),
        freed | b.freed,
        unresolved,
    )


def freed_at_cuts(part: Segment, cuts: Segment, before: Removals) -> dict[int, Freed]:
    """Return row of a cut → how its broker was freed before it; those that were not are left out.

    ``before`` is what is known before the first row of ``part``.
    """
    changes = iter(_rows(part))
    change = next(changes, None)
    known = before
    freed: dict[int, Freed] = {}
    for row, event in cuts.events("node"):
        while change is not None and change[0] < row:
            known = join(known, _of(change[1]))
            change = next(changes, None)
        if event.node in known.freed:
            freed[row] = known.freed[event.node]
    return freed


def _rows(part: Segment) -> Iterator[tuple[int, Event]]:
    return part.where(part.is_kind(*KINDS)).events(*COLUMNS)


def _of(event: Event) -> Removals:
    if event.kind == Kind.REPLICA_STOPPED:
        if event.step not in _DELETED or event.node is None:
            return Removals()
        return Removals(unresolved={event.node: event.time})
    if event.kind == Kind.TRANSITION:
        states = (event.replica, event.from_state, event.to_state)
        is_last = states == _TOPIC_DELETED and event.error is None
        return Removals(latest=Latest(_FOR_GOOD, _FOR_GOOD, frozenset()) if is_last else None)
    if event.isr is None or event.partition_epoch is None or event.leader_epoch is None:
        return Removals()
    return Removals(latest=Latest(event.partition_epoch, event.leader_epoch, frozenset(event.isr)))
