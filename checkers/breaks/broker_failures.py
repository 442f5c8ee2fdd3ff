"""The smallest histories that break what a controller does about brokers that are gone."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.administration import assigned
from nemesis.checkers.breaks.events import TP, broker, grant, history, state, states
from nemesis.history.events import Event

_OFFICE: Final = {"controller_epoch": 1, "session": 20, "zxid": 9}


def _elected(time: int) -> Event:
    return broker(time, 2, "controller-elected", **_OFFICE)


def _ended(time: int, kind: str, *live: int, **columns: Any) -> Event:
    return broker(time, 2, kind, controller_epoch=1, live=list(live) or None, **columns)


_BEFORE: Final = (assigned(1, 1, 2, 3), state(2, 10, 1, 0, [1, 2], epoch=0), grant(9, 20, 2, 1))

DEAD_BROKERS_REPLACED: Final = (
    history(*_BEFORE, _elected(1), _ended(2, "controller-failover", 2)),
    history(
        assigned(1, 1, 2, 3),
        state(2, 10, 2, 0, [1, 2], epoch=0),
        grant(9, 20, 2, 1),
        _elected(1),
        _ended(2, "controller-failover", 2, 3),
    ),
    history(
        _elected(1),
        _ended(2, "controller-failover", 2, 3),
        broker(3, 2, "transition", controller_epoch=1, replica=3, **states("New->Online"), **TP),
        _ended(4, "broker-change-handled", 2),
    ),
    history(
        *_BEFORE,
        _elected(1),
        _ended(2, "controlled-shutdown-handled", peer=1, count=0, error="NONE"),
    ),
    history(
        *_BEFORE,
        _elected(1),
        _ended(2, "controlled-shutdown-handled", peer=2, count=0, error="NONE"),
    ),
)
