"""The smallest histories in which what stands beside a log contradicts its batches, and of segments of wrong sizes."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, broker, harness, history
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import SEGMENT_BYTES

_OF_BROKER: Final[dict[str, Any]] = {"node": 1, **TP}
SIZE: Final = 10


def beside(kind: str, **columns: Any) -> Event:
    """Return what was read beside the log of t-0 in the files of broker 1."""
    return harness(99, kind, **_OF_BROKER, **columns)


def stored(*bases: int, end: int = 4, **columns: Any) -> list[Event]:
    """Return a log of segments that begin at these offsets, with batches of one record, 10 bytes and leader epoch 3."""
    about = {"log_start_offset": 0, "cleaner_offset": 0, "recovery_point": 0} | columns
    log = beside("stored-log", alive=True, error="NONE", log_end_offset=end, **about)
    ends = [*bases[1:], end]
    segments = [
        beside("stored-segment", offset=base, count=(behind - base) * SIZE)
        for base, behind in zip(bases, ends, strict=True)
    ]
    batches = [
        stored_batch(offset, base)
        for base, behind in zip(bases, ends, strict=True)
        for offset in range(base, behind)
    ]
    return [log, *segments, *batches, beside("stored-epoch", leader_epoch=3, offset=0)]


def stored_batch(offset: int, base: int, **columns: Any) -> Event:
    """Return a batch of one record, sequence number and time equal to its offset, of producer 7 in its epoch 1."""
    about: dict[str, Any] = {
        "leader_epoch": 3,
        "crc": offset,
        "producer_id": 7,
        "producer_epoch": 1,
    }
    about |= {"segment_offset": base, "position": (offset - base) * SIZE, "max_timestamp": offset}
    return beside(
        "stored-batch", offset=offset, last_offset=offset, sequence=offset, **(about | columns)
    )


def entry(offset: int, **columns: Any) -> Event:
    return beside("stored-index-entry", segment_offset=0, offset=offset, **columns)


def snapshot(offset: int, *, last: int, **columns: Any) -> list[Event]:
    """Return a snapshot with producer 7."""
    about = {"producer_id": 7, "producer_epoch": 1, "sequence": last} | columns
    return [
        beside("stored-snapshot", offset=offset),
        beside("stored-producer", offset=offset, last_offset=last, **about),
    ]


def limit(size: int) -> Event:
    return harness(0, "broker-property", setting=SEGMENT_BYTES, count=size)


def raised(start: int, node: int = 1) -> Event:
    """Return the trace that a broker has raised the start of t-0."""
    about: dict[str, Any] = {"log_end_offset": 4, "high_watermark": 4, "reason": "segment-deletion"}
    return broker(9, node, "log-start-offset", log_start_offset=start, **TP, **about)


LOG_FILES_AGREE: Final = (
    history(stored(0, 2), entry(0, position=SIZE)),
    history(stored(0, 2), entry(1, position=SIZE + 1)),
    history(stored(0, 2), entry(1, max_timestamp=0)),
    history(stored(0, 3), entry(1, max_timestamp=1)),
    history(stored(0, 2), stored_batch(3, 0, position=20)),
    history(stored(0), beside("stored-epoch", leader_epoch=4, offset=3)),
    history(stored(0, superseded_offset=0, cleaner_offset=2)),
    history(stored(0), snapshot(3, last=1)),
    history(stored(0), snapshot(3, last=2, sequence=1)),
    history(stored(0), beside("stored-snapshot", offset=3)),
    history(raised(2), stored(2, 3)),
    history(stored(0, recovery_point=5)),
    history(stored(0, cleaner_offset=5)),
)

SEGMENTS_ROLL: Final = (
    history(limit(39), stored(0)),
    history(limit(40), stored(0, 2, 3)),
)
