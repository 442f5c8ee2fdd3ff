"""The smallest histories in which replicas do not agree on their offsets when nothing happens any more."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, become_leader, client, harness, history
from nemesis.checkers.breaks.late_recovery import measured
from nemesis.history.events import Event

SETTINGS: Final = {
    "replica.socket.timeout.ms": 2,
    "replica.fetch.backoff.ms": 1,
    "replica.fetch.wait.max.ms": 1,
}
"""The bound is 2 + 1 + 2 * 1 = 5 ms."""
END: Final = 30
"""When the replicas are asked."""


def waits() -> list[Event]:
    """Return the events that state the time-outs."""
    return [
        harness(0, "timeout-setting", setting=name, duration_ms=ms) for name, ms in SETTINGS.items()
    ]


def replica(
    node: int, mark: int, *, start: int = 0, end: int = 5, unchanged: int = 6, **columns: Any
) -> Event:
    """What broker ``node`` answers at rest; broker 1 leads in epoch 1, broker 2 follows."""
    about: dict[str, Any] = {
        **TP,
        "node": node,
        "leader": 1,
        "leader_epoch": 1,
        "replicas": [1, 2],
        "isr": [1, 2],
        "error": "NONE",
        "log_start_offset": start,
        "high_watermark": mark,
        "log_end_offset": end,
        "duration_ms": unchanged,
    }
    return harness(END, "replica-offsets", **about | columns)


def deleted(time: int, node: int, low_watermark: int) -> list[Event]:
    """An administrator deletes records, and broker ``node`` answers."""
    return [
        client(time, "admin-0", "invoke", "delete-records", time, offset=low_watermark),
        client(
            time + 1,
            "admin-0",
            "ok",
            "delete-records",
            time,
            offset=low_watermark,
            log_start_offset=low_watermark,
            node=node,
        ),
    ]


OFFSETS_AT_REST: Final = (
    history(waits(), replica(1, 5), replica(2, 4), measured(31)),
    history(waits(), replica(1, 4), replica(2, 4), measured(31)),
    history(waits(), replica(1, 5, start=3), replica(2, 5), measured(31)),
    history(become_leader(1, 1, 1, 5), deleted(2, 1, 3), replica(1, 5, start=2)),
    history(replica(1, 6)),
    history(replica(1, 5, start=6, end=7)),
)
