"""The smallest histories in which a KRaft quorum breaks what Raft promises."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import harness, history, znode
from nemesis.history.events import Event


def described(time: int, node: int, epoch: int, *, high_watermark: int = 0) -> Event:
    """Return what a voter answers that holds itself for the leader of the quorum."""
    return harness(
        time,
        "quorum-sample",
        node=node,
        controller_epoch=epoch,
        high_watermark=high_watermark,
    )


def led_from(offset: int, node: int, epoch: int) -> list[Event]:
    """Return what the committed log says of a new leader: its first record."""
    return [
        znode(offset, 0, "/controller", zk_op="create", controller_id=node),
        znode(offset, 0, "/controller_epoch", seq=1, controller_epoch=epoch),
    ]


ONE_QUORUM_LEADER: Final = (
    history(described(1, 1, 3), described(2, 2, 3)),
    history(described(1, 1, 3), led_from(5, 2, 3)),
)
QUORUM_COMMITS_STAY: Final = (
    history(described(1, 1, 3, high_watermark=10), described(2, 1, 3, high_watermark=9)),
    history(described(1, 1, 3, high_watermark=10), described(2, 2, 4, high_watermark=9)),
    history(described(1, 1, 3, high_watermark=10), led_from(8, 2, 4)),
)
