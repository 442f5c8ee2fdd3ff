"""The smallest histories that break what a broker has done when it answers a control request."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, become_leader, broker, history
from nemesis.history.events import Event


def answered(time: int, node: int, api: str, leader_epoch: int, **columns: Any) -> Event:
    """The answer NONE to a control request for t-0."""
    about = {"error": "NONE", **TP, **columns}
    return broker(
        time, node, "control-request-answered", api=api, leader_epoch=leader_epoch, **about
    )


def roles(time: int, node: int, leader: int, leader_epoch: int, **columns: Any) -> Event:
    """The answer NONE to a LeaderAndIsr."""
    about = {"partition_epoch": leader_epoch, **columns}
    return answered(time, node, "LeaderAndIsr", leader_epoch, leader=leader, **about)


def updated(time: int, node: int, *live: int) -> Event:
    """The broker has applied an UpdateMetadata with these live brokers."""
    return broker(
        time, node, "metadata-updated", controller_epoch=1, peer=1, count=1, live=list(live)
    )


def known(time: int, node: int, leader_epoch: int, partition_epoch: int, **columns: Any) -> Event:
    about = {"leader": 1, "partition_epoch": partition_epoch, "controller_epoch": 1, **TP}
    return broker(
        time, node, "partition-metadata", leader_epoch=leader_epoch, **{**about, **columns}
    )


def metadata(
    time: int, node: int, leader_epoch: int, partition_epoch: int, **columns: Any
) -> Event:
    """The answer NONE to an UpdateMetadata."""
    about = {"leader": 1, "partition_epoch": partition_epoch, **columns}
    return answered(time, node, "UpdateMetadata", leader_epoch, **about)


def stopped(time: int, node: int, step: str) -> Event:
    return broker(time, node, "replica-stopped", step=step, **TP)


def follows(time: int, node: int, leader: int, leader_epoch: int, **columns: Any) -> Event:
    about = {"leader": leader, "leader_epoch": leader_epoch, "log_end_offset": 0, **TP, **columns}
    return broker(time, node, "become-follower", **about)


CONTROL_REQUESTS_APPLIED: Final = (
    history(become_leader(1, 2, 3, 0), roles(2, 2, 2, 4)),
    history(updated(1, 2, 1, 2), roles(2, 2, 1, 4)),
    history(updated(1, 2, 1, 2), become_leader(2, 2, 4, 0), roles(3, 2, 1, 4)),
    history(updated(1, 2, 1, 3), follows(2, 2, 3, 4), roles(3, 2, 1, 4)),
    history(become_leader(1, 2, 4, 0), stopped(2, 2, "stop"), roles(3, 2, 2, 4)),
    history(become_leader(1, 2, 4, 0), answered(2, 2, "StopReplica", 4, step="stop")),
    history(
        become_leader(1, 2, 4, 0),
        stopped(2, 2, "stop"),
        answered(3, 2, "StopReplica", -2, step="delete"),
    ),
    history(known(1, 2, 4, 7), metadata(2, 2, 4, 8)),
    history(known(1, 2, 3, 7), metadata(2, 2, 4, 7)),
)
