"""What was written to ZooKeeper, or to the metadata log of KRaft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import of
from nemesis.checkers.explain.words import zxid
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM


def _znode(event: Event) -> str:
    session, stamp = f"session {event.session or 0:#x}", f"({zxid(event.zxid)})"
    if event.process == QUORUM:
        session, stamp = "the quorum", f"(offset {event.zxid})"
    if event.zk_op == "delete":
        return f"{session} deleted {event.path} {stamp}"
    did = "created" if event.zk_op == "create" else "set"
    if event.controller_epoch is not None and event.path == "/controller_epoch":
        return f"{session} {did} /controller_epoch to {event.controller_epoch} {stamp}"
    if event.leader_epoch is not None:
        return f"{session} wrote the state of {of(event)}: {state_of(event)} {stamp}"
    if event.path == "/controller_epoch":
        return f"{session} {did} /controller_epoch to {event.data!r} {stamp}"
    return f"{session} {did} {event.path} {stamp}"


def state_of(event: Event) -> str:
    """Return leader, epoch and ISR of a partition."""
    leader = "no leader" if event.leader in (None, -1) else f"leader {event.leader}"
    epoch = f", leader epoch {event.leader_epoch}" if event.leader_epoch is not None else ""
    return f"{leader}{epoch}{f', ISR {event.isr}' if event.isr is not None else ''}"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType({Kind.ZNODE: _znode})
