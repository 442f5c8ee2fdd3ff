"""The smallest histories that break what brokers know of the cluster."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, broker, history, state
from nemesis.history.events import Event


def _knows(time: int, leader: int, leader_epoch: int, partition_epoch: int) -> Event:
    about = {"leader": leader, "leader_epoch": leader_epoch, "partition_epoch": partition_epoch}
    return broker(time, 3, "partition-metadata", controller_epoch=1, **about, **TP)


METADATA_NEVER_BACK: Final = (
    history(_knows(1, 1, 4, 7), _knows(2, 1, 3, 8)),
    history(_knows(1, 1, 4, 7), _knows(2, 1, 4, 6)),
    history(state(5, 10, 2, 4, [2]), _knows(1, 1, 4, 7)),
)
