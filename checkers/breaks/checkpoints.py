"""The smallest histories in which checkpoints on disk are older than their intervals."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    TP,
    harness,
    history,
    log_start,
)
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.retention import COMMITTED, GROWN, OPENED, ended
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    LOG_START_INTERVAL,
    MARK_INTERVAL,
    RECOVERY_POINT_INTERVAL,
)


def intervals(ms: int = 5) -> list[Event]:
    """Return the events that state the intervals of checkpoints."""
    names = (MARK_INTERVAL, LOG_START_INTERVAL, RECOVERY_POINT_INTERVAL)
    return [harness(0, "broker-property", setting=name, count=ms) for name in names]


def checkpointed(*bases: int, mark: int = 3, start: int = 0, point: int = 0) -> list[Event]:
    """Return the files of broker 1's log of t-0, which ends at 3, and their checkpoints."""
    about = {"node": 1, **TP}
    offsets = {"high_watermark": mark, "log_start_offset": start, "recovery_point": point}
    return [
        harness(99, "stored-log", alive=True, error="NONE", log_end_offset=3, **offsets, **about),
        *(harness(99, "stored-segment", offset=base, count=10, **about) for base in bases),
    ]


BEGUN: Final = (intervals(), *OPENED, GROWN, COMMITTED)

CHECKPOINTS_KEPT: Final = (
    history(*BEGUN, ended(9), checkpointed(0, mark=2)),
    history(*BEGUN, log_start(2, 1, 2, 3, high_watermark=3), ended(9), checkpointed(0, start=1)),
    history(*BEGUN, ended(9), checkpointed(0, 1, point=0)),
    history(*BEGUN, fault(3, 7), ended(15), checkpointed(0, mark=2)),
    history(*BEGUN, ended(200, load=194), checkpointed(0, mark=2)),
)
