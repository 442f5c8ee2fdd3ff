"""The last write of a partition's state: what it says, when, and which broker wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.causes.chain import Link
from nemesis.checkers.causes.view import NO_LEADER, View
from nemesis.checkers.explain.words import tp, zxid
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Kind

_WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "offline": ", because the leader until then was not alive",
        "offline-allow-unclean": ", because the leader until then was not alive",
        "unclean": ", by an unclean election",
        "reassign": ", for a reassignment",
        "preferred": ", to elect the preferred leader",
        "controlled-shutdown": ", because a broker shut down",
        "remove-from-isr": ", to remove a broker from the ISR",
        "no-op": ", to raise its leader epoch",
    }
)
"""Why a controller wrote a state, by the strategy of the election."""
_RAISE_EPOCH: Final = frozenset(_WHY) - {"remove-from-isr"}
"""Elections, which begin a new leader epoch."""


def last_write(view: View, state: StateChange) -> Link:
    """Return the link of the last write of a state."""
    return _write(view, state, "the last write of its state")


def epoch_begun(view: View, state: StateChange) -> Link:
    """Return the link of the write that began the leader epoch of a state."""
    return _write(
        view, view.leader_epoch_begun(state), "the first write with this leader and leader epoch"
    )


def _write(view: View, state: StateChange, role: str) -> Link:
    event = state.event
    leader = "no leader" if event.leader in (None, NO_LEADER) else f"leader {event.leader}"
    about = f"({zxid(event.zxid)}): {role}{_stayed(view, state)}"
    text = (
        f"{view.ago(event)}, {_writer(view, state)} wrote {leader}, leader epoch {event.leader_epoch} and ISR "
        f"{event.isr or []} of {tp(event.topic, event.partition)}{_why(view, state)} {about}"
    )
    return Link(text, (state.row, event))


def _why(view: View, state: StateChange) -> str:
    elected = view.events(Kind.LEADER_ELECTED, zxid=state.event.zxid)
    if not elected:
        return ""
    return _WHY.get(elected[0][1].strategy or "", "")


def _stayed(view: View, state: StateChange) -> str:
    """Return a sentence about an election that did not raise the leader epoch; empty for any other write."""
    elected = view.events(Kind.LEADER_ELECTED, zxid=state.event.zxid)
    before = view.state_before(state)
    if not elected or elected[0][1].strategy not in _RAISE_EPOCH or before is None:
        return ""
    is_same = before.event.leader_epoch == state.event.leader_epoch
    if not is_same:
        return ""
    return f". But leader epoch {state.event.leader_epoch} stayed, which each such write must raise"


def _writer(view: View, state: StateChange) -> str:
    written = view.events(
        Kind.LEADER_ELECTED, Kind.ALTER_PARTITION_HANDLED, zxid=state.event.zxid
    ) or view.events(Kind.ZNODE_OUTCOME, zxid=state.event.zxid)
    if not written:
        return f"session {state.event.session or 0:#x}"
    event = written[0][1]
    if event.kind == Kind.LEADER_ELECTED:
        return f"controller {event.node}"
    if event.kind == Kind.ALTER_PARTITION_HANDLED:
        return f"controller {event.node}, to which broker {event.peer} had proposed it,"
    return f"broker {event.node}"
