"""The smallest histories in which a leader answers a wrong offset to a time."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import append, client, high_watermark, history
from nemesis.checkers.breaks.log_files import beside, stored_batch
from nemesis.history.events import Event


def written(*times: int) -> list[Event]:
    """Return batches of broker 1 that have these times, as it appended them and as its files hold them."""
    batches = range(len(times))
    return [
        *(append(1, 1, 3, offset, crc=offset, role="leader") for offset in batches),
        beside("stored-log", alive=True, error="NONE", log_end_offset=len(times)),
        *(stored_batch(offset, 0, max_timestamp=time) for offset, time in enumerate(times)),
    ]


def asked(time: int, wall_ms: int, offset: int) -> list[Event]:
    """Return a question for the first record from a time on, and broker 1's answer."""
    about: dict[str, Any] = {"f": "offset-by-time", "op": time, "node": 1, "wall_ms": wall_ms}
    return [
        client(time, "query-0", "invoke", **about),
        client(time + 1, "query-0", "ok", offset=offset, **about),
    ]


TIMES_ANSWERED: Final = (
    history(written(10, 20), asked(3, 10, 1)),
    history(written(10, 20), asked(3, 20, 0)),
    history(written(10), high_watermark(2, 1, 3, 1, [1]), asked(3, 10, -1)),
)
