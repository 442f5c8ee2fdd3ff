"""The smallest histories in which a log that is dirty enough is not compacted."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, harness, history, znode
from nemesis.checkers.breaks.late_recovery import fault
from nemesis.checkers.breaks.retention import COMMITTED, GROWN, OPENED, ended
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    CLEANABLE_PERCENTAGE,
    CLEANER_BACKOFF,
    CLEANER_ENABLED,
    COMPACTION_LAG,
)

COMPACTED: Final = '{"version":1,"config":{"cleanup.policy":"compact"}}'


def cleaning(*, backoff_ms: int = 5, percentage: int = 0, lag_ms: int = 0) -> list[Event]:
    """Return the events that state the settings of the cleaner."""
    settings = {
        CLEANER_BACKOFF: backoff_ms,
        CLEANABLE_PERCENTAGE: percentage,
        CLEANER_ENABLED: 1,
        COMPACTION_LAG: lag_ms,
    }
    return [
        harness(0, "broker-property", setting=name, count=value) for name, value in settings.items()
    ]


def configured(data: str = COMPACTED) -> Event:
    """Return a write of the settings of topic t."""
    return znode(1, 10, "/config/topics/t", zk_op="create", data=data)


def dirty(*bases: int, cleaned: int = 0, size: int = 10) -> list[Event]:
    """Return the files of broker 1's log of t-0: segments that begin at these offsets, compacted up to one."""
    about = {"node": 1, **TP}
    offsets = {"log_end_offset": 3, "cleaner_offset": cleaned}
    return [
        harness(99, "stored-log", alive=True, error="NONE", **offsets, **about),
        *(harness(99, "stored-segment", offset=base, count=size, **about) for base in bases),
    ]


BEGUN: Final = (cleaning(), configured(), *OPENED, GROWN, COMMITTED)

COMPACTION_RUNS: Final = (
    history(*BEGUN, ended(14), dirty(0, 1)),
    history(*BEGUN, ended(14), dirty(0, 1, 2, cleaned=1)),
    history(*BEGUN, fault(3, 6), ended(18), dirty(0, 1)),
    history(*BEGUN, ended(200, load=190), dirty(0, 1)),
)
