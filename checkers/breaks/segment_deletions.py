"""The smallest histories in which a broker deletes a segment too early."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, broker, harness, history, started, znode
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import RETENTION_BYTES, RETENTION_INTERVAL, RETENTION_MS


def bounds(*, size: int = -1, age_ms: int = 10) -> list[Event]:
    """Return the events that state the settings of retention."""
    settings = {RETENTION_BYTES: size, RETENTION_MS: age_ms, RETENTION_INTERVAL: 5}
    return [
        harness(0, "broker-property", setting=name, count=value) for name, value in settings.items()
    ]


def deleted(
    newest: int, *, start: int = 0, left: int = 100, wall_ms: int = 15, mark: int = 9
) -> Event:
    """Return broker 1's deletion of the segment of t-0 from offset 0 to 4."""
    return broker(
        2,
        1,
        "segments-deleted",
        offset=0,
        last_offset=4,
        log_start_offset=start,
        high_watermark=mark,
        bytes_after=left,
        max_timestamp=newest,
        wall_ms=wall_ms,
        **TP,
    )


STARTED: Final = started(0, 1, unclean=False)
COMPACTED: Final = znode(
    1,
    10,
    "/config/topics/t",
    zk_op="create",
    data='{"version":1,"config":{"cleanup.policy":"compact"}}',
)

SEGMENTS_DELETED_BY_RULE: Final = (
    history(bounds(), STARTED, deleted(6)),
    history(bounds(size=101), STARTED, deleted(7)),
    history(bounds(), STARTED, deleted(8, start=4)),
    history(bounds(age_ms=-1), STARTED, deleted(1)),
    history(bounds(), COMPACTED, STARTED, deleted(2)),
    history(bounds(), STARTED, deleted(3, mark=4)),
)
