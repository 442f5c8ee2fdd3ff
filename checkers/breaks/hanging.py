"""The smallest histories that break the property of hanging transactions."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, become_leader, broker, history, marker
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    ABORT_INTERVAL,
    CONTROL_BACKOFF,
    CONTROL_TIMEOUT,
    FETCH_BACKOFF,
    FETCH_TIMEOUT,
    LAG_TIME,
    SESSION_TIMEOUT,
    TICK,
)

_SETTINGS: Final = (
    *(ABORT_INTERVAL, TICK, SESSION_TIMEOUT, LAG_TIME, FETCH_TIMEOUT, FETCH_BACKOFF),
    *(CONTROL_TIMEOUT, CONTROL_BACKOFF),
)


def harness(time: int, kind: str, **columns: Any) -> Event:
    return Event(time=time, process="harness", kind=kind, **columns)


def settings() -> list[Event]:
    """Time-outs of 1 ms each."""
    return [harness(0, "timeout-setting", setting=name, duration_ms=1) for name in _SETTINGS]


def opened(time: int, node: int = 1, offset: int = 0, **columns: Any) -> Event:
    """The first batch of a transaction of producer 7 in t-0."""
    about = {"role": "leader", "producer_id": 7, "producer_epoch": 0, "offset": offset}
    return broker(time, node, "transaction-opened", **{**about, **TP, **columns})


def added(time: int, timeout_ms: int, **columns: Any) -> Event:
    """The coordinator on broker 2 has added t-0 to a transaction of producer 7."""
    about = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0}
    about |= {"timeout_ms": timeout_ms, "topic": TP["topic"], "partition": TP["partition"]}
    return broker(time, 2, "transaction-partition-added", **{**about, **columns})


def measured(time: int) -> list[Event]:
    """The end of a run whose machine was never late."""
    return [
        harness(time, "phase", phase="end"),
        harness(time, "harness-lag", duration_ms=0),
        harness(time, "machine-load", duration_ms=0),
    ]


HANGING_TRANSACTION: Final = (
    history(settings(), become_leader(1, 1, 0, 0), added(2, 5), opened(3), measured(1_000)),
    history(
        *(settings(), become_leader(1, 1, 0, 0), added(2, 5), opened(3)),
        *(marker(900, 1, 1, first=0, outcome="abort"), measured(1_000)),
    ),
    history(
        *(settings(), become_leader(1, 1, 0, 0), added(2, 5), opened(3)),
        *(added(900, 5), marker(902, 1, 2, first=0), measured(1_000)),
    ),
)
