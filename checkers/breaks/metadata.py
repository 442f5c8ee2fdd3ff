"""The smallest histories that break what brokers know of the cluster."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, broker, client, history, state
from nemesis.history.events import Event


def knows(time: int, leader: int, leader_epoch: int, partition_epoch: int, **columns: Any) -> Event:
    """Return what broker 3 reports of its metadata cache."""
    about = {"leader": leader, "leader_epoch": leader_epoch, "partition_epoch": partition_epoch}
    return broker(time, 3, "partition-metadata", controller_epoch=1, **about, **TP, **columns)


def live_brokers(time: int, *live: int) -> Event:
    """Return the live brokers that broker 3 knows."""
    return broker(time, 3, "metadata-updated", controller_epoch=1, peer=1, count=1, live=[*live])


def answers(time: int, leader: int, leader_epoch: int, **columns: Any) -> list[Event]:
    """Return a query of broker 3, and its answer one tick later."""
    about: dict[str, Any] = {"isr": [1, 2], "replicas": [1, 2, 3], **columns}
    answer = {"leader": leader, "leader_epoch": leader_epoch, **about}
    return [
        client(time, "query-0", "invoke", "metadata", time, node=3),
        client(time + 1, "query-0", "ok", "metadata", time, node=3, **answer),
    ]


def sent(
    time: int, leader: int, leader_epoch: int, version: int, isr: list[int], **columns: Any
) -> Event:
    """Return broker 3's answer to a state in a control request."""
    about: dict[str, Any] = {
        "leader": leader,
        "leader_epoch": leader_epoch,
        "partition_epoch": version,
        "isr": isr,
    }
    about |= {"api": "UpdateMetadata", "error": "NONE", **TP, **columns}
    return broker(time, 3, "control-request-answered", **about)


METADATA_NEVER_BACK: Final = (
    history(knows(1, 1, 4, 7), knows(2, 1, 3, 8)),
    history(knows(1, 1, 4, 7), knows(2, 1, 4, 6)),
    history(state(5, 10, 2, 4, [2]), knows(1, 1, 4, 7)),
)
HELD: Final = (live_brokers(1, 1, 2), knows(1, 1, 4, 7, isr=[1, 2], replicas=[1, 2, 3]))

METADATA_ANSWERED: Final = (
    history(*HELD, answers(2, 2, 4)),
    history(*HELD, answers(2, 1, 3)),
    history(*HELD, answers(2, 1, 4, isr=[1])),
    history(*HELD, answers(2, 1, 4, replicas=[1, 2])),
    history(*HELD, answers(2, -1, 4)),
    history(*HELD, live_brokers(2, 2), answers(3, 1, 4)),
    history(live_brokers(1, 1, 2), answers(2, 1, 4)),
)

STATES_SENT_AS_WRITTEN: Final = (
    history(state(5, 10, 2, 4, [1, 2], zk_version=7), sent(1, 1, 4, 7, [1, 2])),
    history(state(5, 10, 2, 4, [1, 2], zk_version=7), sent(1, 2, 3, 7, [1, 2])),
    history(state(5, 10, 2, 4, [1, 2], zk_version=7), sent(1, 2, 4, 7, [2])),
)
