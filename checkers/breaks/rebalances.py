"""The smallest histories in which a rebalance does not end in time."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import harness, history
from nemesis.checkers.breaks.groups import loaded, request
from nemesis.checkers.breaks.late_recovery import measured
from nemesis.history.events import NO_ANSWER, Event

SETTINGS: Final = {
    "session.timeout.ms": 300,
    "max.poll.interval.ms": 400,
    "group.initial.rebalance.delay.ms": 100,
    "offsets.commit.timeout.ms": 50,
}
"""The bounds, with what timers add: 600 ms for a JoinGroup, 500 ms for a session, 1,800 ms for a member alone."""
UNANSWERED: Final = {"kind": "info", "error": NO_ANSWER}


def configured() -> list[Event]:
    """Return the events that state the time-outs."""
    return [
        harness(0, "timeout-setting", setting=name, duration_ms=ms) for name, ms in SETTINGS.items()
    ]


def joining(time: int, taking: int, **columns: Any) -> list[Event]:
    """A JoinGroup of member a, which has generation 1."""
    return request(time, "join-group", 1, 1, taking=taking, **columns)


def syncing(time: int, taking: int, **columns: Any) -> list[Event]:
    """A SyncGroup of member a in generation 1."""
    return request(time, "sync-group", 1, 1, taking=taking, **columns)


SILENT: Final = [
    loaded(0, 1),
    *request(1, "sync-group", 1, 1, taking=0),
    *request(600, "heartbeat", 1, 1, member="b", taking=0),
]
"""Member a falls silent, and the generation goes on."""
RETURNED: Final = [
    loaded(0, 1),
    *request(1, "sync-group", 1, 1, taking=0),
    *request(600, "heartbeat", 1, 1, taking=2),
]
"""Member a falls silent, and comes back as if its session had not ended."""
ALONE: Final = [
    *joining(1, 1, count=1),
    *syncing(2, 900, **UNANSWERED),
    *syncing(1000, 900, **UNANSWERED),
]
"""Member a asks for its assignment until the bound has passed."""

REBALANCES_END: Final = (
    history(configured(), joining(1, 700, **UNANSWERED), measured(800)),
    history(configured(), SILENT, measured(800)),
    history(configured(), RETURNED, measured(800)),
    history(configured(), ALONE, measured(2000)),
    history(configured(), joining(1, 700, **UNANSWERED), measured(800, lag=101)),
)
