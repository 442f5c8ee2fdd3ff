"""Whether acknowledged records may be lost, so that what becomes of transactions is allowed."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.power_cuts import LOSING
from nemesis.history.events import Kind
from nemesis.history.vocabulary.faults import LAST_IN_ISR
from nemesis.history.vocabulary.harness import UNCLEAN_ELECTIONS

KINDS: Final = frozenset({Kind.FAULT_INVOKE, Kind.BROKER_STARTED, Kind.BROKER_PROPERTY})
_TRANSACTIONS: Final = "__transaction_state-"
"""How partitions are called in which coordinators keep transactions."""
COLUMNS: Final = ("fault", "detail", "setting", "count", "unclean_leader_election_enable")


def may_lose(item: Row) -> bool:
    """Whether an event says that acknowledged records of any partition may be lost."""
    event = item[1]
    if event.kind == Kind.FAULT_INVOKE:
        return event.fault in LOSING and _strikes_last_replica(event.detail)
    if event.kind == Kind.BROKER_PROPERTY:
        return event.setting == UNCLEAN_ELECTIONS and bool(event.count)
    return event.kind == Kind.BROKER_STARTED and bool(event.unclean_leader_election_enable)


def may_lose_epochs(item: Row) -> bool:
    """Whether an event says that the epochs of producers may be lost: a power cut struck their last replica."""
    event = item[1]
    return (
        event.kind == Kind.FAULT_INVOKE and event.fault in LOSING and _strikes_epochs(event.detail)
    )


def allowed(result: Result) -> Result:
    """Return the result with its violations reported and allowed."""
    if not result.findings:
        return result
    findings = tuple(replace(item, verdict=Verdict.VALID) for item in result.findings)
    return replace(result, verdict=Verdict.VALID, findings=findings)


def _strikes_last_replica(intent: str | None) -> bool:
    """Whether a fault was about to strike the last replica of a partition."""
    return bool(_struck(intent))


def _strikes_epochs(intent: str | None) -> bool:
    """Whether such a partition is one in which coordinators keep transactions."""
    return any(str(name).startswith(_TRANSACTIONS) for name in _struck(intent))


def _struck(intent: str | None) -> list[Any]:
    try:
        listed = msgspec.json.decode(intent or "{}", type=dict[str, Any]).get(LAST_IN_ISR)
    except msgspec.MsgspecError:
        return []
    return listed if isinstance(listed, list) else []
