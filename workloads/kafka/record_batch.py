"""Record batches of format v2 (KIP-98), built and read by the client itself.

Layout of the 61-byte header, big endian: base offset i64,
length i32, partition leader epoch i32, magic i8 = 2, CRC-32C u32 of all that follows, attributes i16, last offset delta
i32, base and max timestamp i64, producer id i64, producer epoch i16, base sequence i32, record count i32. A record is a
varint length and: attributes i8, timestamp delta, offset delta, key and value each with a varint length (−1 = null),
headers: a varint count, then for each a name and a value like key and value. A codec (``compression``) compresses all
that follows the header of the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crc32c import crc32c

from nemesis.workloads.kafka.compression import CODECS, CodecName, compressed, decompressed
from nemesis.workloads.kafka.errors import BadRecordBatch

_HEADER = struct.Struct(">qiibIhiqqqhii")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_COMPRESSION_MASK = 0x07
_TRANSACTIONAL_FLAG = 0x10
_CONTROL_FLAG = 0x20
_MAGIC = 2


class Producer(NamedTuple):
    """Who writes a batch, and which of its records come first in it."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


NO_PRODUCER = Producer(-1, -1, -1)
"""Idempotence off."""


Headers = tuple[tuple[str, bytes | None], ...]


class NewRecord(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Batch(NamedTuple):
    """What the header of a batch says."""

    base_offset: int
    last_offset: int
    producer_id: int
    is_transactional: bool
    is_control: bool


class Record(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def _write_varint(out: bytearray, number: int) -> None:
    number = (number << 1) ^ (number >> 63)
    while number & ~0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:  # nearly all: lengths of small records
        return (byte >> 1) ^ -(byte & 1), position + 1
    shift = result = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
        if shift > 63:
            raise BadRecordBatch("a varint is longer than ten bytes")


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    _write_varint(out, -1 if data is None else len(data))
    out += data or b""


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = _read_varint(data, position)
    if size < 0:
        return None, position
    return data[position : position + size], position + size


def build(
    records: Sequence[NewRecord | tuple[bytes | None, bytes | None]],
    timestamp_ms: int,
    producer: Producer = NO_PRODUCER,
    codec: CodecName = "none",
    *,
    is_transactional: bool = False,
) -> bytes:
    """Return one batch of the records, which may be mere pairs of key and value, all stamped with ``timestamp_ms``."""
    body = bytearray()
    for delta, record in enumerate(records):
        encoded = bytearray(b"\x00")
        _write_varint(encoded, 0)
        _write_varint(encoded, delta)
        _write_bytes(encoded, record[0])
        _write_bytes(encoded, record[1])
        _write_headers(encoded, record.headers if isinstance(record, NewRecord) else ())
        _write_varint(body, len(encoded))
        body += encoded
    count = len(records)
    attributes = CODECS.index(codec) | (_TRANSACTIONAL_FLAG if is_transactional else 0)
    fields = (attributes, count - 1, timestamp_ms, timestamp_ms, *producer, count)
    tail = _AFTER_CRC.pack(*fields) + compressed(bytes(body), codec)
    crc = crc32c(tail)
    return struct.pack(">qiibI", 0, 9 + len(tail), -1, _MAGIC, crc) + tail


def _write_headers(out: bytearray, headers: Headers) -> None:
    _write_varint(out, len(headers))
    for name, value in headers:
        _write_bytes(out, name.encode())
        _write_bytes(out, value)


def _read_headers(data: bytes, position: int) -> Headers:
    count, position = _read_varint(data, position)
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        headers.append(((name or b"").decode(errors="backslashreplace"), value))
    return tuple(headers)


def read(data: bytes) -> Iterator[Record]:
    """Yield the records of whole batches; a batch cut off at the end is left out, as fetches may cut it.

    Raises ``BadRecordBatch`` for a wrong CRC or magic, and for records that the codec cannot read.
    """
    for batch in whole_batches(data):
        yield from read_batch(batch)


def whole_batches(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of each whole batch."""
    position = 0
    while len(data) - position >= _HEADER.size:
        _, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
        end = position + _OFFSET_AND_LENGTH.size + length
        if end > len(data):
            return
        yield data[position:end]
        position = end


def batch_header(batch: bytes) -> Batch:
    """Return what the header of a batch says; its CRC is not compared."""
    fields = _HEADER.unpack_from(batch)
    base_offset, attributes, last_offset_delta, producer_id = (
        fields[0],
        fields[5],
        fields[6],
        fields[9],
    )
    return Batch(
        base_offset,
        base_offset + last_offset_delta,
        producer_id,
        is_transactional=bool(attributes & _TRANSACTIONAL_FLAG),
        is_control=bool(attributes & _CONTROL_FLAG),
    )


def end_offset(data: bytes) -> int:
    """Return the offset behind the last whole batch; 0 when there is none."""
    position = end = 0
    while len(data) - position >= _HEADER.size:
        fields = _HEADER.unpack_from(data, position)
        base_offset, length, last_offset_delta = fields[0], fields[1], fields[6]
        position += _OFFSET_AND_LENGTH.size + length
        if position <= len(data):
            end = base_offset + last_offset_delta + 1
    return end


def read_batch(batch: bytes) -> Iterator[Record]:
    """Yield the records of one whole batch; a control batch has none for clients. Raises as ``read`` does."""
    fields = _checked_header(batch)
    base_offset, attributes, count = fields[0], fields[5], fields[12]
    if attributes & _CONTROL_FLAG:
        return
    yield from _records(batch, base_offset, attributes, count)


def control_key(batch: bytes) -> bytes | None:
    """Return the key of a control batch's record, which says what it controls. Raises as ``read`` does."""
    fields = _checked_header(batch)
    records = _records(batch, fields[0], fields[5], fields[12])
    return next((record.key for record in records), None)


def _checked_header(batch: bytes) -> tuple[Any, ...]:
    """Return the fields of a batch's header. Raises ``BadRecordBatch`` for a wrong CRC or magic."""
    fields = _HEADER.unpack_from(batch)
    base_offset, magic, crc = fields[0], fields[3], fields[4]
    if magic != _MAGIC:
        raise BadRecordBatch(f"the batch at offset {base_offset} has magic {magic}")
    if crc32c(batch[21:]) != crc:
        raise BadRecordBatch(f"the batch at offset {base_offset} fails its CRC")
    return fields


def _records(batch: bytes, base_offset: int, attributes: int, count: int) -> Iterator[Record]:
    records = decompressed(batch[_HEADER.size :], attributes & _COMPRESSION_MASK)
    position = 0
    for _ in range(count):
        size, position = _read_varint(records, position)
        end = position + size
        _, cursor = _read_varint(records, position + 1)
        offset_delta, cursor = _read_varint(records, cursor)
        key, cursor = _read_bytes(records, cursor)
        value, cursor = _read_bytes(records, cursor)
        yield Record(base_offset + offset_delta, key, value, _read_headers(records, cursor))
        position = end
