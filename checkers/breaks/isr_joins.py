"""The smallest histories in which a replica joins the ISR without having caught up."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    high_watermark,
    history,
    truncate,
)
from nemesis.history.events import Event


def proposed(time: int, node: int, epoch: int, isr: list[int], *joining: int) -> Event:
    """A leader proposes these members for the ISR."""
    about: dict[str, Any] = {"isr": isr, "maximal_isr": [*isr, *joining], "change": "expand"}
    return broker(time, node, "isr-change-proposed", leader_epoch=epoch, **about, **TP)


def follows(time: int, node: int, epoch: int, end: int, **columns: int) -> Event:
    """A broker becomes a follower of broker 1 with a log of this end."""
    about = {"leader": 1, "leader_epoch": epoch, "log_end_offset": end, **columns}
    return broker(time, node, "become-follower", **about, **TP)


ISR_JOIN_CAUGHT_UP: Final = (
    history(
        become_leader(1, 1, 2, 0),
        follows(2, 2, 2, 4),
        high_watermark(3, 1, 2, 5, [1]),
        proposed(4, 1, 2, [1], 2),
    ),
    history(
        become_leader(1, 1, 2, 5),
        follows(2, 2, 2, 3),
        append(3, 2, 1, 3),
        proposed(4, 1, 2, [1], 2),
    ),
    history(
        become_leader(1, 1, 2, 0, replicas=[1, 3]), follows(2, 2, 2, 0), proposed(3, 1, 2, [1], 2)
    ),
    history(become_leader(1, 1, 2, 0), follows(2, 2, 1, 9), proposed(3, 1, 2, [1], 2)),
    history(
        become_leader(1, 1, 2, 5),
        follows(2, 2, 2, 5),
        proposed(3, 1, 2, [1], 2),
        truncate(4, 2, 4, leader_epoch=2),
    ),
)
