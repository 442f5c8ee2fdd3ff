"""The smallest histories in which a leader states wrong broker epochs of the members of an ISR."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, become_leader, broker, history
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.history.events import Event


def registers(time: int, node: int, epoch: int, *, incarnation: int = 1) -> Event:
    """A broker registers with this broker epoch."""
    about = {"broker_epoch": epoch, "incarnation": incarnation}
    return broker(time, node, "broker-registered", **about)


def fetched(time: int, replica: int, epoch: int, *, leader_epoch: int = 2) -> Event:
    """Leader 1 takes in a fetch that carries another broker epoch."""
    about = {"replica": replica, "leader_epoch": leader_epoch, "broker_epoch": epoch}
    return broker(time, 1, "follower-epoch", **about, **TP)


def proposes(time: int, isr: list[int], *joining: int) -> Event:
    """Leader 1 proposes to add these, or, without any, another ISR out of the members."""
    about: dict[str, Any] = {"isr": isr, "maximal_isr": [*isr, *joining]}
    about |= {"change": "expand" if joining else "shrink", "partition_epoch": 4}
    return broker(time, 1, "isr-change-proposed", leader_epoch=2, **about, **TP)


def received(time: int, stated: dict[int, int], *, error: str = "NONE") -> Event:
    """Controller 3 answers a proposal of leader 1: these members with these broker epochs."""
    about: dict[str, Any] = {"isr": list(stated), "isr_epochs": list(stated.values())}
    about |= {"leader_epoch": 2, "partition_epoch": 4, "peer": 1, "error": error}
    return broker(time, 3, "alter-partition-handled", broker_epoch=8, **about, **TP)


LEADS: Final = become_leader(1, 1, 2, 0)

ISR_EPOCHS_STATED: Final = (
    history(LEADS, proposes(2, [1], 2), received(3, {1: 8, 2: -1})),
    history(LEADS, proposes(2, [1, 2, 3]), received(3, {1: 8, 2: 9})),
    history(registers(1, 1, 8), proposes(2, [1, 2]), received(3, {1: 7})),
    history(registers(1, 2, 9), follows(2, 2, 2, 0), fetched(3, 2, 7)),
    history(LEADS, fetched(2, 2, 9), proposes(3, [1], 2), received(4, {1: 8, 2: -1})),
    history(LEADS, fetched(2, 2, 9), proposes(3, [1, 2, 3]), received(4, {1: 8, 2: -1})),
    history(
        LEADS,
        fetched(2, 2, 7),
        fetched(3, 2, 9),
        proposes(4, [1], 2),
        received(5, {1: 8, 2: 7}),
    ),
    history(LEADS, fetched(2, 2, 9), proposes(3, [1], 2), received(4, {1: 8, 2: 10})),
)
