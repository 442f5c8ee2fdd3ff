"""The smallest histories in which a leader does not commit what all members of its new ISR have."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import (
    TP,
    append,
    become_leader,
    broker,
    high_watermark,
    history,
    started,
)
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.isr_shrinks import leads
from nemesis.checkers.breaks.late_recovery import configured
from nemesis.history.events import Event

ALL: Final = [1, 2, 3]


def committed(time: int, isr: list[int], ends: list[int] | None = None) -> Event:
    """Broker 1 learns that this ISR is committed, and knows these ends of its members' logs."""
    about: dict[str, Any] = {"leader_epoch": 2, "isr": isr, "maximal_isr": isr, "offsets": ends}
    return broker(time, 1, "isr-change-committed", **about, **TP)


BEGUN: Final = (
    configured(),
    [started(0, node, unclean=False) for node in ALL],
    become_leader(1, 1, 2, 0, isr=ALL, replicas=ALL),
    [follows(1, node, 2, 0) for node in (2, 3)],
)
"""The lag time is 4 ms, and min.insync.replicas is 1."""
FETCHES: Final = [leads(2, 0), append(4, 2, 2, 0), leads(6, 1), append(8, 2, 2, 1)]
"""Broker 2 has record 1, so it has fetched from offset 1 on. Broker 3 has nothing."""

HW_FOLLOWS_ISR: Final = (
    history(*BEGUN, leads(2, 1), committed(12, [1, 2], [2, 2]), leads(13, 2)),
    history(*BEGUN, FETCHES, committed(12, [1, 2]), leads(13, 2)),
    history(
        *BEGUN,
        FETCHES,
        [leads(9, 2), append(11, 2, 2, 2)],
        committed(14, [1, 2]),
        high_watermark(14, 1, 2, 1, [1, 2]),
    ),
)
