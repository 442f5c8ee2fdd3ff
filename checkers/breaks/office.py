"""The smallest histories that break how the office of the controller ends."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import broker, grant, history, znode
from nemesis.history.events import Event

_REGISTERED: Final = znode(1, 20, "/brokers/ids/2", zk_op="create", node=2)


def _deleted(zxid: int, session: int) -> Event:
    return znode(zxid, session, "/controller", zk_op="delete")


def _office(time: int, kind: str, **columns: Any) -> Event:
    return broker(time, 1, kind, controller_epoch=1, **columns)


OFFICE_KEPT: Final = (
    history(_REGISTERED, grant(2, 10, 1, 1), _deleted(3, 20)),
    history(
        grant(2, 10, 1, 1),
        _office(1, "controller-elected", session=10, zxid=2),
        _deleted(3, 10),
    ),
    history(
        grant(2, 10, 1, 1),
        _office(1, "controller-elected", session=10, zxid=2),
        _office(2, "controller-resigned", reason="/controller names broker 1"),
        _office(3, "controller-elected", session=10, zxid=2),
        znode(4, 10, "/controller", zk_op="delete"),
    ),
)
