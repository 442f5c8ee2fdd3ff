"""Record batches for tests, built here byte by byte (the product never builds one)."""

from __future__ import annotations

import struct

from crc32c import crc32c

from reference.protocol.record_batch import assign, iter_batches


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
) -> bytes:
    """Return a batch of magic 2 with a right CRC; its records are the payload, whatever that is."""
    body = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            count - 1 if last_offset_delta is None else last_offset_delta,
            timestamp,
            timestamp if max_timestamp is None else max_timestamp,
            -1,
            -1,
            -1,
            count,
        )
        + payload
    )
    return struct.pack(">qiibI", base_offset, 9 + len(body), leader_epoch, 2, crc32c(body)) + body


def assigned(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batches as a leader writes them."""
    return assign(data, iter_batches(data), base_offset, leader_epoch)[0]
