"""The smallest histories in which a changed setting does not take effect."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import client, history
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.history.events import Event


def altered(time: int, value: int, outcome: str = "ok", **columns: Any) -> list[Event]:
    """Return a change of the largest batch that topic t takes, and its answer one tick later."""
    about: dict[str, Any] = {"setting": "max.message.bytes", "value": value}
    about |= {"topic_id": None, "partition": None, **columns}
    ask = ("alter-config", time)
    return [
        client(time, "administrator-0", "invoke", *ask, **about),
        client(time + 1, "administrator-0", outcome, *ask, **about),
    ]


def batch(time: int, size: int, outcome: str = "ok") -> list[Event]:
    """Return a send in a batch of this size, and its answer one tick later: taken, or refused as too large."""
    about: dict[str, Any] = {"value": time, "acks": -1}
    answer = {"offset": time} if outcome == "ok" else {"error": "MESSAGE_TOO_LARGE"}
    return [
        client(time, "producer-0", "invoke", "send", time, **about),
        client(time + 1, "producer-0", outcome, "send", time, count=size, **about | answer),
    ]


SETTINGS_TAKE_EFFECT: Final = (
    history(configured(), altered(1, 100), batch(11, 200), measured(12)),
    history(configured(), altered(1, 100), batch(11, 50, "fail"), measured(12)),
    history(configured(), altered(1, 300), altered(3, 100), batch(14, 200), measured(15)),
    history(configured(), altered(1, 100), fault(2, 5), batch(16, 200), measured(17)),
    history(configured(), altered(1, 100), batch(12, 200), measured(13, load=9)),
)
"""Sessions last 3 ms, and ZooKeeper's tick 1 ms, so the bound is 8 ms."""
