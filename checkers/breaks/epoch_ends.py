"""The smallest histories in which the end of a leader epoch is not as the leader's log has it."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    client,
    history,
    loaded,
    truncate,
)
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.history.events import Event


def epoch_end(
    time: int, node: int, asked: int, epoch: int, offset: int, *, taking: int = 1
) -> list[Event]:
    """A client asks where a leader epoch ends, and is answered ``taking`` ticks later."""
    return [
        client(time, "query-0", "invoke", "epoch-end", time, node=node, leader_epoch=asked),
        client(
            time + taking,
            "query-0",
            "ok",
            "epoch-end",
            time,
            node=node,
            leader_epoch=epoch,
            offset=offset,
        ),
    ]


def log_of_two_epochs(time: int, node: int) -> list[Event]:
    """A log that has leader epoch 0 up to 4, and leader epoch 2 from there to 6; the broker leads in that epoch."""
    return [
        loaded(time, node, 0),
        append(time, node, 0, 0, last=3),
        become_leader(time, node, 2, 4),
        append(time, node, 2, 4, last=5, role="leader"),
    ]


def moved(time: int, node: int, latest: int, end: int = 6) -> Event:
    """A log of this end is from now on in another directory, and knows this leader epoch as its latest."""
    about = {"leader_epoch": latest, "log_start_offset": 0, "log_end_offset": end}
    return broker(time, node, "log-dir-changed", **about, **TP)


EPOCH_ENDS_ANSWERED: Final = (
    history(log_of_two_epochs(1, 1), epoch_end(2, 1, 1, 1, 4)),
    history(log_of_two_epochs(1, 1), epoch_end(2, 1, 0, 0, 6)),
    history(log_of_two_epochs(1, 1), epoch_end(2, 1, 1, -1, -1)),
    history(
        loaded(1, 2, 0),
        append(1, 2, 0, 0, last=5),
        log_of_two_epochs(1, 1),
        follows(2, 2, 2, 6),
        truncate(3, 2, 5, leader_epoch=2),
    ),
    history(log_of_two_epochs(1, 1), become_leader(2, 1, 3, 6), moved(3, 1, 2)),
)
