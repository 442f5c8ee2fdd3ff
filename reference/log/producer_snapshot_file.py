"""``<20-digit offset>.snapshot``: what a log remembered of its producers when it ended at that offset.

Kafka's format, version 1, big endian: version int16, CRC-32C uint32 of all that follows, number of producers int32,
then for each: producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp
int64, coordinator epoch int32, first offset of the open transaction int64. Of each producer it keeps the last batch.

A producer of which the log has only markers has −1 for its last sequence and its last offset. The last two fields are
−1 before the first marker, and while no transaction is open.

Source: kafka's ProducerStateManager.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import Final

from crc32c import crc32c

from nemesis.reference.log.producer_state_entry import (
    NO_SEQUENCE,
    BatchMetadata,
    ProducerStateEntry,
)

_SNAPSHOT_NAME: Final = re.compile(r"[0-9]{20}\.snapshot")
_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NO_BATCH: Final = BatchMetadata(NO_SEQUENCE, -1, 0, -1)


def snapshot_file_name(offset: int) -> str:
    """Return Kafka's name of the snapshot of a log that ends there."""
    return f"{offset:020d}.snapshot"


def snapshot_offset(name: str) -> int | None:
    """Return the offset that a file's name says; None when it is no snapshot's."""
    return int(name[:20]) if _SNAPSHOT_NAME.fullmatch(name) else None


def encode_snapshot(entries: Iterable[ProducerStateEntry]) -> bytes:
    """Return a file's content."""
    packed = [_encode(entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerStateEntry]:
    """Return what ``encode_snapshot`` was given, of each producer the last batch; raises ValueError for other bytes."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise ValueError(f"{len(data)} bytes are no snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"version {version} of a snapshot is not known")
    if crc32c(data[_HEAD.size :]) != crc:
        raise ValueError("the CRC does not match")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    packed = data[_HEAD.size + _COUNT.size :]
    if len(packed) != count * _ENTRY.size:
        raise ValueError(f"{len(packed)} bytes do not hold {count} producers")
    return [_decode(fields) for fields in _ENTRY.iter_unpack(packed)]


def _encode(entry: ProducerStateEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else _NO_BATCH
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def _decode(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp = fields[:6]
    batch = BatchMetadata(last_sequence, last_offset, offset_delta, timestamp)
    batches = (batch,) if last_offset >= 0 else ()
    return ProducerStateEntry(producer_id, epoch, batches, timestamp, *fields[6:])
