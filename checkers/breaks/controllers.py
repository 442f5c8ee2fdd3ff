"""The smallest histories that break the properties of controllers: one per epoch, stale ones fenced."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, broker, grant, history, state, znode
from nemesis.history.events import Event


def _sent(time: int, node: int, epoch: int, incarnation: int = 1) -> Event:
    about: dict[str, Any] = {"controller_epoch": epoch, "peer": 3, "api": "LeaderAndIsr"}
    return broker(time, node, "control-request-sent", incarnation=incarnation, **about)


def _handled(time: int, node: int, api: str, **columns: Any) -> Event:
    return broker(time, node, "control-request-handled", api=api, error="NONE", **columns)


def _refused(time: int, node: int, api: str, **columns: Any) -> Event:
    about: dict[str, Any] = {"api": api, "error": "STALE_BROKER_EPOCH", **columns}
    return broker(time, node, "control-request-handled", **about)


def _registered(time: int, epoch: int, incarnation: int = 1) -> Event:
    return broker(time, 3, "broker-registered", broker_epoch=epoch, incarnation=incarnation)


def _knows(time: int, peer: int, epoch: int) -> Event:
    about: dict[str, Any] = {
        "controller_epoch": 4,
        "peer": peer,
        "broker_epoch": epoch,
        "api": "UpdateMetadata",
    }
    return broker(time, 1, "control-request-sent", **about)


def _altered(time: int, proposer: int, isr: dict[int, int]) -> Event:
    about: dict[str, Any] = {
        "isr": list(isr),
        "isr_epochs": list(isr.values()),
        "error": "NONE",
        "zxid": 99,
    }
    return broker(time, 1, "alter-partition-handled", peer=2, broker_epoch=proposer, **about, **TP)


CREATED = znode(1, 9, "/controller_epoch", zk_op="create", controller_epoch=0)

SINGLE_CONTROLLER: Final = (
    history(CREATED, grant(2, 10, 1, 1), _sent(6, 1, 1), _sent(7, 2, 1)),
    history(grant(2, 10, 1, 1), grant(3, 20, 2, 1)),
    history(CREATED, grant(2, 10, 1, 1), grant(3, 20, 2, 2), state(4, 10, 1, 0, [1], epoch=2)),
    history(_sent(6, 1, 4), _sent(7, 2, 4)),
    history(grant(2, 10, 1, 1), _sent(6, 1, 1), _sent(7, 1, 1, incarnation=2)),
    history(grant(2, 10, 1, 2), _sent(6, 1, 1)),
    history(grant(2, 10, 1, 1), _sent(6, 2, 2)),
)
CONTROLLER_EPOCH_GROWS: Final = (
    history(grant(2, 10, 1, 1), grant(9, 20, 2, 3)),
    history(grant(2, 10, 1, 2), grant(9, 20, 2, 2)),
    history(grant(2, 10, 1, 1), znode(9, 30, "/controller_epoch", zk_op="delete")),
    history(grant(2, 10, 1, 1), znode(9, 30, "/controller_epoch", data="one")),
)
STALE_CONTROLLER_FENCED: Final = (
    history(
        _handled(6, 3, "LeaderAndIsr", controller_epoch=2),
        _handled(7, 3, "LeaderAndIsr", controller_epoch=1),
    ),
    history(
        CREATED,
        grant(2, 10, 1, 1),
        state(3, 10, 1, 0, [1, 3]),
        grant(4, 20, 2, 2),
        state(5, 10, 3, 1, [3]),
    ),
    history(
        grant(2, 10, 1, 1),
        state(3, 10, 3, 0, [1, 3]),
        znode(4, 30, "/brokers/ids/2", zk_op="create", node=2),
        state(5, 30, 3, 0, [3]),
    ),
    history(grant(2, 10, 1, 1), state(3, 10, 3, 0, [1, 3]), state(4, 30, 3, 0, [3])),
    history(state(3, 10, 1, 0, [1])),
)
BROKER_EPOCH_FENCED: Final = (
    history(_registered(1, 7), _registered(2, 9), _handled(3, 3, "StopReplica", broker_epoch=7)),
    history(
        _registered(1, 7),
        _registered(2, 6, incarnation=2),
        _handled(3, 3, "StopReplica", broker_epoch=7, incarnation=2),
    ),
    history(_knows(1, 2, 21), _altered(2, 20, {2: 20, 3: 30})),
    history(_knows(1, 3, 31), _altered(2, 20, {2: 20, 3: 30})),
    history(_registered(1, 7), _refused(2, 3, "UpdateMetadata", broker_epoch=9)),
)
