"""The smallest histories in which a tombstone is gone too early, or would be."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks.events import TP, broker, harness, history, send, znode
from nemesis.history.events import Event
from nemesis.history.vocabulary.harness import DELETE_RETENTION

CONFIGURED: Final = (
    harness(0, "broker-property", setting=DELETE_RETENTION, count=10),
    znode(
        1, 10, "/config/topics/t", zk_op="create", data='{"config":{"cleanup.policy":"compact"}}'
    ),
)
"""``delete.retention.ms`` is 10."""


def tombstone(time: int, value: int, *, key: int = 1, offset: int = 0) -> list[Event]:
    """Return the send of a tombstone, which is acknowledged."""
    events = send(time, value, offset=offset)
    events[0].key, events[0].tombstone = key, True
    events[1].key, events[1].tombstone = key, True
    return events


def compacted(time: int, wall_ms: int, *, node: int = 1, last: int = 0) -> Event:
    """Return the compaction of offset 0 to another one, begun at a time of the day."""
    about = {"log_start_offset": 0, "log_end_offset": 2, "high_watermark": 2, **TP}
    sizes = {"bytes_before": 20, "bytes_after": 10}
    columns = {"offset": 0, "last_offset": last, "wall_ms": wall_ms, **about, **sizes}
    return broker(time, node, "log-cleaned", **columns)


def files(*offsets: int, node: int = 1, end: int = 2, horizon_ms: int | None = None) -> list[Event]:
    """Return the files of a broker with batches of one record at these offsets."""
    about = {"node": node, **TP}
    ends = {"log_start_offset": 0, "log_end_offset": end}
    return [
        harness(90, "stored-log", alive=True, error="NONE", **ends, **about),
        *(
            harness(
                90,
                "stored-batch",
                offset=offset,
                last_offset=offset,
                leader_epoch=0,
                crc=7,
                delete_horizon_ms=horizon_ms,
                **about,
            )
            for offset in offsets
        ),
    ]


TOMBSTONES_KEPT: Final = (
    history(*CONFIGURED, tombstone(2, 7), compacted(4, 20), compacted(9, 25), files(1)),
    history(*CONFIGURED, tombstone(2, 7), compacted(4, 20), files(1)),
    history(*CONFIGURED, tombstone(2, 7), compacted(4, 20), files(0, 1, horizon_ms=29)),
)
