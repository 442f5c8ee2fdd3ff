"""The smallest histories in which a replica is not moved to the log directory that an administrator named."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    TP,
    become_leader,
    broker,
    client,
    harness,
    history,
    loaded,
    started,
)
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import FETCH_BACKOFF, MOVE_QUOTA


def request(time: int, log_dir: str, outcome: str = "ok") -> list[Event]:
    """Return a request to move broker 1's replica of t-0, and its completion at the same time."""
    return [
        client(time, "admin-0", kind, "alter-log-dir", time, node=1, log_dir=log_dir)
        for kind in ("invoke", outcome)
    ]


def moved(time: int, log_dir: str) -> Event:
    """Return what broker 1 reports when its replica has moved."""
    return broker(time, 1, "log-dir-changed", log_dir=log_dir, log_end_offset=1, **TP)


def stored(*, alive: bool = True, size: int = 10) -> list[Event]:
    """Return the files of broker 1's log of t-0."""
    about = {"node": 1, **TP}
    return [
        harness(999, "stored-log", alive=alive, error="NONE", log_end_offset=1, **about),
        harness(999, "stored-segment", offset=0, count=size, **about),
    ]


def ended(time: int, load: int = 0) -> list[Event]:
    """Return the end of a run whose machine was measured."""
    return [*measured(time, load=load), harness(time, "phase", phase="end")]


BEGUN: Final = (
    harness(0, "broker-property", setting=MOVE_QUOTA, count=10_000),
    harness(0, "timeout-setting", setting=FETCH_BACKOFF, duration_ms=2),
    started(0, 1, unclean=False),
    loaded(1, 1, 1, log_dir="a"),
    become_leader(1, 1, 1, 1),
)
"""The bound is 1 + 2 = 3 ms."""

LOG_DIR_MOVES_END: Final = (
    history(*BEGUN, moved(2, "b")),
    history(*BEGUN, request(2, "b"), ended(9), stored()),
    history(*BEGUN, request(2, "b"), request(3, "c", "fail"), ended(9), stored()),
    history(*BEGUN, request(2, "b"), moved(3, "b"), request(4, "c"), ended(9), stored()),
    history(*BEGUN, request(2, "b"), fault(3, 6), ended(13), stored()),
    history(*BEGUN, request(2, "b"), ended(200, load=197), stored()),
)
