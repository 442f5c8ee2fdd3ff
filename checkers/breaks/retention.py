"""The smallest histories in which a broker keeps segments that it should delete."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import (
    TP,
    append,
    harness,
    high_watermark,
    history,
    loaded,
    log_start,
    started,
)
from nemesis.checkers.breaks.late_recovery import fault, measured
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import (
    RETENTION_BYTES,
    RETENTION_INTERVAL,
    RETENTION_MS,
)


def retained(*, retention_bytes: int = 10, interval_ms: int = 5) -> list[Event]:
    """Return the events that state the settings of retention."""
    settings = {RETENTION_BYTES: retention_bytes, RETENTION_INTERVAL: interval_ms}
    return [
        harness(0, "broker-property", setting=name, count=value) for name, value in settings.items()
    ]


def ended(time: int, load: int = 0) -> list[Event]:
    """Return the end of a run whose machine was measured."""
    return [*measured(time, load=load), harness(time, "phase", phase="end")]


def stored(
    *bases: int, size: int = 10, alive: bool = True, error: str = "NONE", newest: int | None = None
) -> list[Event]:
    """Return the files of broker 1's log of t-0: segments that begin at these offsets."""
    about = {"node": 1, **TP}
    return [
        harness(99, "stored-log", alive=alive, error=error, log_end_offset=bases[-1] + 1, **about),
        *(
            harness(99, "stored-segment", offset=base, count=size, max_timestamp=newest, **about)
            for base in bases
        ),
    ]


OPENED: Final = (started(0, 1, unclean=False), loaded(1, 1, 0))
GROWN: Final = [append(2, 1, 1, offset, role="leader") for offset in range(3)]
COMMITTED: Final = high_watermark(2, 1, 1, 3, [1])
BEGUN: Final = (retained(), *OPENED, GROWN, COMMITTED)
"""From 3 ms on the log reaches offset 2, with three segments of which the second suffices."""

RETENTION_RUNS: Final = (
    history(*BEGUN, ended(9), stored(0, 1, 2)),
    history(
        retained(retention_bytes=-1),
        *OPENED,
        GROWN,
        log_start(2, 1, 1, 3, high_watermark=3),
        ended(9),
        stored(0, 1, 2),
    ),
    history(
        retained(retention_bytes=-1),
        harness(0, "broker-property", setting=RETENTION_MS, count=10),
        *OPENED,
        GROWN,
        COMMITTED,
        measured(18),
        harness(18, "phase", phase="end", wall_ms=18),
        stored(0, 1, 2, newest=2),
    ),
    history(*BEGUN, fault(3, 6), ended(13), stored(0, 1, 2)),
    history(*BEGUN, ended(200, load=192), stored(0, 1, 2)),
)
