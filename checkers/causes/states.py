"""The last write of a partition's state: what it says, when, and which broker wrote it."""

from __future__ import annotations

from nemesis.checkers.causes.chain import Link
from nemesis.checkers.causes.view import NO_LEADER, View
from nemesis.checkers.explain.words import tp, zxid
from nemesis.checkers.znodes import StateChange
from nemesis.history.events import Kind


def last_write(view: View, state: StateChange) -> Link:
    """Return the link of the last write of a state."""
    return _write(view, state, "the last write of its state")


def epoch_begun(view: View, state: StateChange) -> Link:
    """Return the link of the write that began the leader epoch of a state."""
    return _write(view, view.leader_epoch_begun(state), "the begin of that leader epoch")


def _write(view: View, state: StateChange, role: str) -> Link:
    event = state.event
    leader = "no leader" if event.leader in (None, NO_LEADER) else f"leader {event.leader}"
    text = (
        f"{view.ago(event)}, {_writer(view, state)} wrote {leader}, leader epoch {event.leader_epoch} and ISR "
        f"{event.isr or []} of {tp(event.topic, event.partition)} ({zxid(event.zxid)}): {role}"
    )
    return Link(text, (state.row, event))


def _writer(view: View, state: StateChange) -> str:
    written = view.events(
        Kind.LEADER_ELECTED, Kind.ALTER_PARTITION_HANDLED, zxid=state.event.zxid
    ) or view.events(Kind.ZNODE_OUTCOME, zxid=state.event.zxid)
    if not written:
        return f"session {state.event.session or 0:#x}"
    event = written[0][1]
    if event.kind == Kind.LEADER_ELECTED:
        return f"controller {event.node} ({event.strategy})"
    if event.kind == Kind.ALTER_PARTITION_HANDLED:
        return f"controller {event.node}, to which broker {event.peer} had proposed it,"
    return f"broker {event.node}"
