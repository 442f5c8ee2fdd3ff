"""The smallest histories that break the properties of high watermarks and the agreement of logs."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import (
    PERMITTED,
    TP,
    acknowledged,
    append,
    become_leader,
    broker,
    elected,
    harness,
    high_watermark,
    history,
    loaded,
    log_start,
    truncate,
)
from nemesis.checkers.breaks.offsets_at_rest import replica
from nemesis.history.events import Event


def _files(time: int, node: int, *batches: tuple[int, int], **columns: Any) -> list[Event]:
    """A log in a broker's files: its batches of one record are (offset, CRC)."""
    about: dict[str, Any] = {"process": "harness", "node": node, **TP}
    end = max((offset + 1 for offset, _ in batches), default=0)
    log_columns: dict[str, Any] = {"log_end_offset": end, "high_watermark": end, **columns}
    log_columns = {
        "log_start_offset": 0,
        "cleaner_offset": 0,
        "alive": True,
        "error": "NONE",
        **log_columns,
    }
    log = Event(time=time, seq=time, kind="stored-log", **about, **log_columns)
    stored = [
        Event(
            time=time,
            seq=time + position,
            kind="stored-batch",
            offset=offset,
            last_offset=offset,
            leader_epoch=0,
            crc=crc,
            **about,
        )
        for position, (offset, crc) in enumerate(batches, start=1)
    ]
    return [log, *stored]


HW_BOUNDED: Final = (
    history(append(1, 2, 0, 3), high_watermark(2, 1, 0, 5, [1, 2])),
    history(loaded(1, 1, 0), high_watermark(2, 1, 0, 5, [1], log_end_offset=4)),
    history(broker(0, 2, "broker-started"), high_watermark(2, 1, 0, 5, [1, 2])),
    history(high_watermark(2, 1, 0, 5, [1, 2])),
)
HW_GROWS: Final = (history(high_watermark(1, 1, 0, 5, [1]), high_watermark(2, 1, 0, 4, [1])),)
NO_TRUNCATION_BELOW_HW: Final = (
    history(high_watermark(1, 1, 0, 5, [1, 2]), truncate(2, 2, 4, high_watermark=4)),
    history(truncate(1, 2, 4, high_watermark=4, high_watermark_before=5)),
    history(high_watermark(1, 1, 0, 5, [1, 2]), loaded(2, 2, 4)),
    history(
        PERMITTED,
        high_watermark(1, 1, 0, 5, [1, 2]),
        elected(2, 9, 3, [3], strategy="unclean"),
        truncate(3, 2, 4),
    ),
)
ACK_AFTER_COMMIT: Final = (
    history(high_watermark(1, 1, 0, 7, [1, 2]), acknowledged(2, 1, 0, 7, high_watermark=7)),
)
LOG_START_BOUNDED: Final = (
    history(log_start(1, 1, 6, 9, high_watermark=5, reason="segment-deletion")),
    history(
        log_start(1, 1, 4, 9, high_watermark=9, reason="segment-deletion"),
        log_start(2, 1, 3, 9, high_watermark=9, reason="segment-deletion"),
    ),
    history(log_start(1, 1, 4, 9, high_watermark=9, reason="client-record-deletion")),
    history(
        broker(
            1,
            1,
            "log-cleaned",
            offset=0,
            last_offset=5,
            high_watermark=5,
            bytes_before=9,
            bytes_after=4,
            **TP,
        )
    ),
)
LOG_MATCHING: Final = (
    history(append(1, 1, 2, 3, crc=7, role="leader"), append(2, 2, 2, 3, crc=8)),
    history(
        become_leader(1, 1, 0, 0),
        append(2, 1, 0, 0, role="leader"),
        append(3, 2, 0, 0),
        high_watermark(4, 1, 0, 1, [1, 2]),
        become_leader(5, 1, 1, 0),
        append(6, 1, 1, 0, role="leader", crc=1),
    ),
)
LEADER_COMPLETENESS: Final = (
    history(high_watermark(1, 1, 0, 5, [1, 2]), become_leader(2, 2, 1, 4)),
    history(
        become_leader(1, 1, 1, 0),
        append(2, 1, 1, 0, role="leader"),
        append(3, 2, 0, 0),
        acknowledged(4, 1, 1, 0),
        become_leader(5, 2, 2, 1),
    ),
    history(
        PERMITTED,
        high_watermark(1, 1, 0, 5, [1]),
        elected(2, 9, 2, [2], strategy="unclean"),
        become_leader(3, 2, 1, 2),
    ),
)
FINAL_LOGS: Final = (
    history(_files(50, 1, (0, 7)), _files(60, 2, (0, 8))),
    history(_files(50, 1, (0, 7), (2, 9))),
    history(_files(50, 1, (0, 7), high_watermark=3, error="00.log is damaged at byte 68")),
    history(high_watermark(1, 1, 0, 2, [1, 2]), _files(50, 2, (0, 7), high_watermark=1)),
    history(replica(1, 2), _files(50, 1, (0, 7))),
    history(harness(50, "stored-log", node=2, error="EIO")),
)
