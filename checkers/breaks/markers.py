"""The smallest histories that break the properties of markers of transactions."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, broker, history, marker
from nemesis.history.events import Event


def completed(time: int, outcome: str = "commit", **columns: Any) -> Event:
    """The coordinator on broker 2 has completed a transaction of producer 7 that included t-0."""
    about = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0, "outcome": outcome}
    key = {"topic": TP["topic"], "partition": TP["partition"]}
    return broker(time, 2, "transaction-completed", **{**about, **key, **columns})


def stored_marker(time: int, node: int, offset: int, **columns: Any) -> Event:
    """A marker of producer 7 in the files of a broker."""
    about = {"producer_id": 7, "producer_epoch": 0, "outcome": "commit", "first_offset": -1}
    about |= {"leader_epoch": 0, "offset": offset}
    return Event(
        time=time, process="harness", kind="stored-marker", node=node, **{**about, **TP, **columns}
    )


def stored_log(time: int, node: int, end: int, *batches: int, **columns: Any) -> list[Event]:
    """The files of a broker end at an offset, and have batches of producer 7 at these."""
    about: dict[str, Any] = {"process": "harness", "node": node, **TP}
    log = Event(
        time=time,
        kind="stored-log",
        log_end_offset=end,
        alive=True,
        error="NONE",
        **about | columns,
    )
    stored = [
        Event(
            time=time,
            kind="stored-batch",
            offset=base,
            last_offset=base,
            leader_epoch=0,
            crc=base,
            producer_id=7,
            **about,
        )
        for base in batches
    ]
    return [log, *stored]


MARKER_EPOCH_GROWS: Final = (
    history(marker(1, 1, 1, coordinator_epoch=2), marker(2, 1, 2, coordinator_epoch=1)),
    history(
        stored_marker(1, 1, 1, coordinator_epoch=2), stored_marker(2, 1, 2, coordinator_epoch=1)
    ),
)
TORN_MARKERS: Final = (
    history(completed(2)),
    history(marker(1, 1, 1, first=0, outcome="abort"), completed(2)),
    history(marker(1, 1, 1, first=0, producer_epoch=1), completed(2)),
    history(marker(1, 1, 1, first=0), completed(2), completed(4, "abort")),
)
MARKERS_KEPT: Final = (history(marker(1, 1, 1, first=0), stored_log(9, 1, 2, 0)),)
