"""Whether acknowledged records may be lost, so that findings that follow from it are reported and allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.power_cuts import LOSING
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.faults import LAST_IN_ISR
from nemesis.history.vocabulary.harness import UNCLEAN_ELECTIONS

KINDS: Final = frozenset({Kind.FAULT_INVOKE, Kind.BROKER_STARTED, Kind.BROKER_PROPERTY})
COLUMNS: Final = ("fault", "detail", "setting", "count", "unclean_leader_election_enable")
TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""Where coordinators keep transactions, and the epochs of producers."""


def may_lose(rows: Iterable[Row], topic: str | None = None) -> bool:
    """Whether acknowledged records of this topic, or of any, may be lost: unclean elections are permitted, too."""
    return any(_permits_unclean(event) or _strikes_last_replica(event, topic) for _, event in rows)


def lost_last_replica(rows: Iterable[Row], topic: str) -> bool:
    """Whether a power cut or a damaged log struck the last replica in the ISR of a partition of this topic."""
    return any(_strikes_last_replica(event, topic) for _, event in rows)


def allowed(result: Result) -> Result:
    """Return the result with its violations reported and allowed."""
    if not result.findings:
        return result
    findings = tuple(replace(item, verdict=Verdict.VALID) for item in result.findings)
    return replace(result, verdict=Verdict.VALID, findings=findings)


def _permits_unclean(event: Event) -> bool:
    if event.kind == Kind.BROKER_PROPERTY:
        return event.setting == UNCLEAN_ELECTIONS and bool(event.count)
    return event.kind == Kind.BROKER_STARTED and bool(event.unclean_leader_election_enable)


def _strikes_last_replica(event: Event, topic: str | None) -> bool:
    if event.kind != Kind.FAULT_INVOKE or event.fault not in LOSING:
        return False
    struck = _last_in_isr(event.detail)
    return any(topic is None or str(name).startswith(f"{topic}-") for name in struck)


def _last_in_isr(intent: str | None) -> list[Any]:
    """Return the partitions whose last replica in the ISR a fault was about to strike."""
    try:
        listed = msgspec.json.decode(intent or "{}", type=dict[str, Any]).get(LAST_IN_ISR)
    except msgspec.MsgspecError:
        return []
    return listed if isinstance(listed, list) else []
