"""When a leader could propose a smaller ISR: it led, its ISR was committed, and no change of it was in flight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.liveness.log_ends import Ends
from nemesis.history.events import Kind

KINDS: Final = frozenset(
    {
        Kind.BECOME_LEADER,
        Kind.BECOME_FOLLOWER,
        Kind.ISR_CHANGE_PROPOSED,
        Kind.ISR_CHANGE_COMMITTED,
        Kind.REPLICA_STOPPED,
    }
)
_BEGINS: Final = frozenset({Kind.BECOME_LEADER, Kind.ISR_CHANGE_COMMITTED})
_PROOFS: Final = _BEGINS | {Kind.BECOME_FOLLOWER, Kind.ISR_CHANGE_PROPOSED}
"""What a process traces only of a partition that it has hosted up to then."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A stretch in which a leader could propose a smaller ISR at any time."""

    began: Row
    """The event with which it became the leader in this epoch."""
    isr: tuple[int, ...]
    """The committed ISR."""
    opened: int
    closed: int
    """Up to when it is known to have led and to have proposed nothing, in ns."""
    last_row: int
    """The event that shows that it led up to then."""


def watches(rows: Sequence[Row], ends: Ends) -> Iterator[Watch]:
    """Yield the watches of the leaders of one partition; the rows are all of ``KINDS``, in history order."""
    began: dict[str, Row] = {}
    opened: dict[str, Row] = {}
    for item in rows:
        event = item[1]
        before = opened.pop(event.process, None)
        if before is not None:
            is_same_process = before[1].incarnation == event.incarnation
            proof = item if is_same_process and event.kind in _PROOFS else None
            yield _watch(began[event.process], before, event.time, proof, ends)
        if event.kind == Kind.BECOME_LEADER:
            began[event.process] = item
        if event.kind in _BEGINS and event.process in began:
            opened[event.process] = item
    for process, item in opened.items():
        yield _watch(began[process], item, 2**62, None, ends)


def _watch(began: Row, opened: Row, until: int, proof: Row | None, ends: Ends) -> Watch:
    """The watch ends with its proof, or else with the last record that the leader appended before ``until``."""
    row, event = opened
    if proof is not None:
        closed, last_row = until, proof[0]
    else:
        appended = ends.of_leader(event.node or 0, event.time, until)
        is_silent = not len(appended.time)
        closed = event.time if is_silent else int(appended.time[-1])
        last_row = row if is_silent else int(appended.row[-1])
    return Watch(began, tuple(event.isr or ()), event.time, closed, last_row)
