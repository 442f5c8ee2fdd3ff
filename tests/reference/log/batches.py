"""Record batches for tests, built here byte by byte (the product never builds one)."""

from __future__ import annotations

import struct
from typing import Any, Final

from crc32c import crc32c

from nemesis.reference.protocol.compression import compressed
from nemesis.reference.protocol.record_batch import assign, iter_batches

NOW_MS = 1_000_000
"""What the wall clocks of tests say, milliseconds since 1970; their producers are remembered for as long again."""
PRODUCERS: Final[dict[str, Any]] = {
    "producer_id_expiration_ms": NOW_MS,
    "wall_clock": lambda: NOW_MS,
}
"""What a log is told of its producers."""


def batch(
    count: int = 1,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = 0,
    max_timestamp: int | None = None,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    payload: bytes = b"payload",
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """Return a batch of magic 2 with a right CRC; its records are the payload, whatever that is.

    ``producer`` is its producer id, epoch and base sequence.
    """
    body = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            count - 1 if last_offset_delta is None else last_offset_delta,
            timestamp,
            timestamp if max_timestamp is None else max_timestamp,
            *producer,
            count,
        )
        + payload
    )
    return struct.pack(">qiibI", base_offset, 9 + len(body), leader_epoch, 2, crc32c(body)) + body


def assigned(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batches as a leader writes them."""
    return assign(data, iter_batches(data), base_offset, leader_epoch)[0]


def with_codec(data: bytes, codec: int) -> bytes:
    """Return a batch that is not compressed as a producer with that codec sends it."""
    body = data[21:61], compressed(codec, data[61:])
    attributes = struct.pack(">h", codec)
    tail = attributes + body[0][2:] + body[1]
    return struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, crc32c(tail)) + tail
