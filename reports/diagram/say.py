"""An event in the few words that a row of a diagram has room for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.words import zxid
from nemesis.history.events import Event, Kind

MAX_CHARACTERS: Final = 34


def say(event: Event) -> str:
    """Return what the event says, cut to a row's width; its kind if there is nothing better to say."""
    words = _WORDS.get(Kind(event.kind), _kind)(event)
    return words if len(words) <= MAX_CHARACTERS else f"{words[: MAX_CHARACTERS - 1]}…"


def _kind(event: Event) -> str:
    return event.kind.replace("-", " ")


def _tp(event: Event) -> str:
    return f"{event.topic}-{event.partition}"


def _error(event: Event, otherwise: str) -> str:
    return otherwise if event.error in (None, "NONE") else str(event.error)


def _isr(event: Event) -> str:
    return f"ISR {','.join(map(str, event.isr or [])) or 'empty'}"


def _offsets(event: Event) -> str:
    if event.last_offset is None or event.last_offset == event.offset:
        return str(event.offset)
    return f"{event.offset}–{event.last_offset}"


def _request(event: Event) -> str:
    return f"{event.api} epoch {event.controller_epoch}"


def _handled(event: Event) -> str:
    return _error(event, f"accepts epoch {event.controller_epoch}")


def _attempt(event: Event) -> str:
    parts = (event.path or "").split("/")
    znode = f"{parts[3]}-{parts[5]}" if len(parts) == 7 and parts[-1] == "state" else event.path
    return f"write {znode}"


def _outcome(event: Event) -> str:
    return _error(event, f"committed, {zxid(event.zxid)}")


def _elected(event: Event) -> str:
    leader = "no leader" if event.leader in (None, -1) else f"leader {event.leader}"
    return f"{_tp(event)}: {leader}, e{event.leader_epoch}, {_isr(event)}"


def _znode(event: Event) -> str:
    if event.leader_epoch is not None:
        return f"{_elected(event)}"
    doing = {"create": "created", "setData": "set", "delete": "gone"}
    return f"{event.path} {doing.get(event.zk_op or '', event.zk_op or '')}".strip()


def _send(event: Event) -> str:
    if event.f == "poll":
        return f"{event.process}: poll {event.offset}"
    if event.f == "send":
        return f"{event.process}: send {event.value}"
    return f"{event.process}: {event.f} {event.topic or ''}".rstrip()


def _answer(event: Event) -> str:
    if event.f == "poll":
        return f"read {_span(event.values)}"
    return f"ok, offset {event.offset}" if event.f == "send" else "ok"


def _span(values: list[int] | None) -> str:
    if not values:
        return "nothing"
    return str(values[0]) if len(values) == 1 else f"{len(values)}: {values[0]} … {values[-1]}"


def _fault(event: Event) -> str:
    return (
        f"{event.fault} strikes" if event.kind == Kind.FAULT_APPLIED else f"{event.fault} is over"
    )


_WORDS: Final[Mapping[Kind, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.INVOKE: _send,
        Kind.OK: _answer,
        Kind.FAIL: lambda e: f"failed: {e.error}",
        Kind.INFO: lambda e: f"unknown: {e.error}",
        Kind.FINAL_READ: lambda e: f"final read to {e.offset}, HW {e.high_watermark}",
        Kind.BROKER_STARTED: lambda _: "starts",
        Kind.BROKER_REGISTERED: lambda e: f"registered, epoch {e.broker_epoch}",
        Kind.SESSION_STATE: lambda e: f"session {e.session_state}",
        Kind.SESSION_CLOSED: lambda e: f"session {e.reason}",
        Kind.CONTROLLER_ELECTED: lambda e: f"is controller, epoch {e.controller_epoch}",
        Kind.CONTROLLER_FAILOVER: lambda e: f"failover done, epoch {e.controller_epoch}",
        Kind.CONTROLLER_RESIGNED: lambda e: f"resigns epoch {e.controller_epoch}",
        Kind.CONTROL_REQUEST_SENT: _request,
        Kind.CONTROL_REQUEST_HANDLED: _handled,
        Kind.ZNODE_ATTEMPT: _attempt,
        Kind.ZNODE_OUTCOME: _outcome,
        Kind.ZNODE: _znode,
        Kind.LEADER_ELECTED: _elected,
        Kind.BECOME_LEADER: lambda e: (
            f"leads e{e.leader_epoch}, LEO {e.log_end_offset}, HW {e.high_watermark}"
        ),
        Kind.BECOME_FOLLOWER: lambda e: (
            f"follows {e.leader}, e{e.leader_epoch}, LEO {e.log_end_offset}"
        ),
        Kind.LOG_LOADED: lambda e: f"log {e.topic}-{e.partition}: LEO {e.log_end_offset}",
        Kind.TRUNCATE: lambda e: f"truncates to {e.log_end_offset}, HW {e.high_watermark}",
        Kind.APPEND: lambda e: f"appends {_offsets(e)}, e{e.leader_epoch}",
        Kind.PRODUCE_ACKNOWLEDGED: lambda e: f"acknowledges {_offsets(e)}, HW {e.high_watermark}",
        Kind.HIGH_WATERMARK: lambda e: f"HW {e.high_watermark}, LEO {e.log_end_offset}",
        Kind.ISR_CHANGE_PROPOSED: lambda e: f"proposes to {e.change} the ISR",
        Kind.ISR_CHANGE_COMMITTED: _isr,
        Kind.REPLICA_STOPPED: lambda e: f"replica: {e.step}",
        Kind.FAULT_APPLIED: _fault,
        Kind.FAULT_HEALED: _fault,
    }
)
