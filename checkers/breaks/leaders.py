"""The smallest histories that break the properties of leader epochs, elections and state machines."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.administration import assigned
from nemesis.checkers.breaks.events import (
    TP,
    acknowledged,
    append,
    become_leader,
    broker,
    elected,
    history,
    started,
    state,
    states,
)
from nemesis.history.events import Event


def _moved(time: int, change: str, replica: int | None = None) -> Event:
    about: dict[str, Any] = {"controller_epoch": 4, "replica": replica, **states(change)}
    return broker(time, 1, "transition", **about, **TP)


def _follower(time: int, node: int, epoch: int, end: int) -> Event:
    about: dict[str, Any] = {"leader": 1, "leader_epoch": epoch, "log_end_offset": end}
    return broker(time, node, "become-follower", **about, **TP)


_FORBIDDEN = started(0, 9, unclean=False)
_ONE_ELIGIBLE = '{"isr":[],"elr":[2],"last_known_elr":[]}'
"""A state of KRaft in which broker 2 alone may be elected (KIP-966)."""

LEADER_EPOCH_GROWS: Final = (
    history(state(1, 9, 1, 4, [1, 2]), state(2, 9, 1, 3, [1, 2])),
    history(state(1, 9, 1, 4, [1, 2]), state(2, 9, 2, 4, [1, 2])),
    history(_follower(1, 2, 3, 0), become_leader(2, 2, 2, 0)),
)
ONE_LEADER_PER_EPOCH: Final = (
    history(become_leader(1, 1, 4, 0), append(2, 2, 4, 0, role="leader")),
    history(state(1, 9, 1, 4, [1, 2], zk_version=0), become_leader(5, 2, 4, 0)),
    history(state(1, 9, -1, 4, [1, 2], zk_version=0), acknowledged(5, 1, 4, 0)),
    history(
        state(1, 9, 1, 0, [1, 2], zk_version=0, zk_op="create"),
        state(2, 9, 2, 2, [2], zk_version=1),
        become_leader(5, 1, 1, 0),
    ),
    history(state(1, 9, 1, 2, [1], zk_version=0), become_leader(5, 1, 3, 0)),
)
LEADER_FROM_ISR: Final = (
    history(_FORBIDDEN, state(1, 9, 1, 0, [1, 2]), state(2, 9, 3, 1, [3])),
    history(state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 1, [])),
    history(state(1, 9, 1, 0, [1, 2]), state(2, 9, 1, 1, [2])),
    history(assigned(1, 1, 2), state(2, 9, 1, 0, [1, 2]), state(3, 9, 1, 0, [1, 2, 3])),
    history(state(1, 9, 4, 1, [4]), elected(5, 1, 4, [4])),
    history(state(1, 9, 1, 0, [1, 2]), state(2, 9, 2, 1, [2]), elected(5, 2, 2, [2], live=[1])),
    history(
        state(1, 9, 1, 0, [1, 2]),
        state(2, 9, 2, 1, [2]),
        elected(5, 2, 2, [2], strategy="remove-from-isr"),
    ),
    history(
        state(1, 9, 1, 0, [1]), state(2, 9, 3, 1, [3]), elected(5, 2, 3, [3], strategy="unclean")
    ),
    history(_FORBIDDEN, state(1, 0, -1, 1, [], data=_ONE_ELIGIBLE), state(2, 0, 3, 2, [3])),
)
LEGAL_TRANSITION: Final = (
    history(_moved(1, "Online->New")),
    history(
        _moved(1, "NonExistent->New", 3),
        _moved(2, "New->Online", 3),
        _moved(3, "Offline->DeletionStarted", 3),
    ),
    history(_moved(1, "Offline->DeletionStarted", 3)),
    history(broker(1, 1, "transition", controller_epoch=4, **TP)),
)
