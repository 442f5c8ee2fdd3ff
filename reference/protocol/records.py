"""The records inside a batch of magic 2: read, and written again without those that are not wanted.

Only topics that are compacted have their records looked at; everywhere else a batch is opaque (``record_batch``). Of a
record its key is read, whether it has a value, and its time; what follows the time is kept as it is. A coordinator
writes batches of its own, and reads the values of their records.

A batch that is written again keeps its offsets, its leader epoch, its producer and its codec, so that it stays the
batch that it was for followers, producers and indexes. Its base timestamp is that of its first record, or, under the
flag ``delete horizon``, the time from which on its tombstones may go (KIP-534); each record's time is a difference to
it.

    record: length varint | attributes int8 | timestamp delta varlong | offset delta varint
            | key length varint, key | value length varint, value | headers

Source: DefaultRecordBatch, DefaultRecord and MemoryRecords.filterTo of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from nemesis.reference.protocol.compression import compressed, decompressed
from nemesis.reference.protocol.record_batch import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    CorruptRecordError,
    RecordBatchHeader,
)

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME_FLAG: Final = 0x08
_DELETE_HORIZON_FLAG: Final = 0x40
_NO_TIMESTAMP: Final = -1
_NO_PRODUCER: Final = (-1, -1, -1)
"""Producer id, epoch and base sequence number."""
_MOST_VARINT_BITS: Final = 63
_BEFORE_CRC: Final = Struct(">qiibI")
_AFTER_CRC: Final = Struct(">hiqqqhii")


class Record(NamedTuple):
    """One record; ``rest`` is what follows its timestamp delta, as it stands in the batch."""

    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool
    attributes: int
    rest: bytes


def delete_horizon_ms(header: RecordBatchHeader) -> int | None:
    """From when on the batch's tombstones may go, ms since 1970; None while that is not settled."""
    return header.base_timestamp if header.attributes & _DELETE_HORIZON_FLAG else None


def read_records(batch: bytes, header: RecordBatchHeader) -> list[Record]:
    """Return the records of a batch, which is whole; raises CorruptRecordError when they are not as many as it says."""
    data = decompressed(header.attributes & _CODEC_MASK, batch[HEADER_SIZE:])
    records: list[Record] = []
    position = 0
    try:
        for _ in range(header.record_count):
            length, position = _varint(data, position)
            end = position + length
            if length < 1 or end > len(data):
                raise CorruptRecordError(f"a record of {length} bytes at {position}")
            records.append(_record(data, position, end, header))
            position = end
    except IndexError:
        raise CorruptRecordError(f"a record is cut short at {len(data)}") from None
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes follow the last record")
    return records


def read_keys_and_values(
    batch: bytes, header: RecordBatchHeader
) -> list[tuple[bytes | None, bytes | None]]:
    """Return the key and the value of each record of a batch, which is whole, in its order; no value: a tombstone.

    Raises CorruptRecordError when the records are not as many as the batch says.
    """
    # A coordinator reads a million records when it loads: no call and no object for each field of each of them.
    data = decompressed(header.attributes & _CODEC_MASK, batch[HEADER_SIZE:])
    pairs: list[tuple[bytes | None, bytes | None]] = []
    position, size = 0, len(data)
    try:
        for _ in range(header.record_count):
            length, position = _varint(data, position)
            end = position + length
            if length < 1 or end > size:
                raise CorruptRecordError(f"a record of {length} bytes at {position}")
            index = position + 1  # behind the attributes
            while data[index] & 0x80:
                index += 1  # within the timestamp delta
            index += 1
            while data[index] & 0x80:
                index += 1  # within the offset delta
            key, index = _nullable(data, index + 1, end)
            value, index = _nullable(data, index, end)
            if index >= end:
                raise CorruptRecordError(f"a record at {position} that cannot be")
            pairs.append((key, value))
            position = end
    except IndexError:
        raise CorruptRecordError(f"a record is cut short at {size}") from None
    if position != size:
        raise CorruptRecordError(f"{size - position} bytes follow the last record")
    return pairs


def new_batch(
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    *,
    attributes: int = 0,
    producer: tuple[int, int, int] = _NO_PRODUCER,
) -> bytes:
    """Return a batch of a broker's own: keys and values, all of one time, not compressed.

    Its base offset and leader epoch are those that a log gives it. ``producer`` is the producer id, the producer epoch
    and the base sequence number of a batch that belongs to a transaction.
    """
    body = bytearray()
    for offset_delta, (key, value) in enumerate(records):
        record = bytearray([0, 0])  # attributes; the difference to the base timestamp
        _write_varint(record, offset_delta)
        _write_bytes(record, key)
        _write_bytes(record, value)
        record.append(0)  # headers
        _write_varint(body, len(record))
        body += record
    last_offset_delta = len(records) - 1
    tail = _AFTER_CRC.pack(
        attributes, last_offset_delta, timestamp_ms, timestamp_ms, *producer, len(records)
    )
    tail += body
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    return _BEFORE_CRC.pack(0, length, -1, CURRENT_MAGIC, crc32c(tail)) + tail


def rebuilt(
    header: RecordBatchHeader, records: Sequence[Record], *, horizon_ms: int | None
) -> bytes:
    """Return the batch with these of its records, at least one, and that delete horizon."""
    base_timestamp = records[0].timestamp if horizon_ms is None else horizon_ms
    codec = header.attributes & _CODEC_MASK
    body = compressed(codec, b"".join(_written(record, base_timestamp) for record in records))
    attributes = header.attributes & ~_DELETE_HORIZON_FLAG
    if horizon_ms is not None:
        attributes |= _DELETE_HORIZON_FLAG
    max_timestamp = header.max_timestamp
    if not attributes & _LOG_APPEND_TIME_FLAG:
        max_timestamp = max(record.timestamp for record in records)
    return _batch(header, attributes, (base_timestamp, max_timestamp), len(records), body)


def emptied(header: RecordBatchHeader) -> bytes:
    """Return the batch without records: what is left to tell of its producer."""
    attributes = header.attributes & ~_CODEC_MASK & ~_DELETE_HORIZON_FLAG
    return _batch(header, attributes, (_NO_TIMESTAMP, header.max_timestamp), 0, b"")


def _batch(
    header: RecordBatchHeader, attributes: int, times: tuple[int, int], count: int, body: bytes
) -> bytes:
    producer = header.producer_id, header.producer_epoch, header.base_sequence
    delta = header.last_offset_delta
    tail = _AFTER_CRC.pack(attributes, delta, *times, *producer, count) + body
    length = HEADER_SIZE - LOG_OVERHEAD + len(body)
    epoch, crc = header.partition_leader_epoch, crc32c(tail)
    return _BEFORE_CRC.pack(header.base_offset, length, epoch, CURRENT_MAGIC, crc) + tail


def _record(data: bytes, position: int, end: int, header: RecordBatchHeader) -> Record:
    attributes = data[position]
    timestamp_delta, rest = _varint(data, position + 1)
    offset_delta, index = _varint(data, rest)
    key_length, index = _varint(data, index)
    key = data[index : index + key_length] if key_length >= 0 else None
    value_length, index = _varint(data, index + max(key_length, 0))
    if index + max(value_length, 0) >= end or not 0 <= offset_delta <= header.last_offset_delta:
        raise CorruptRecordError(f"a record at {position} that cannot be")
    offset = header.base_offset + offset_delta
    timestamp = header.base_timestamp + timestamp_delta
    return Record(offset, timestamp, key, value_length >= 0, attributes, data[rest:end])


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    """Return a key or value, and where it ends; None has a negative length. Raises IndexError behind the data."""
    length = data[position]
    if length < 0x80:  # one byte, as most lengths have
        length, position = (length >> 1) ^ -(length & 1), position + 1
    else:
        length, position = _varint(data, position)
    if length < 0:
        return None, position
    stop = position + length
    if stop > end:
        raise CorruptRecordError(f"a field of {length} bytes at {position}")
    return data[position:stop], stop


def _written(record: Record, base_timestamp: int) -> bytes:
    body = bytearray([record.attributes])
    _write_varint(body, record.timestamp - base_timestamp)
    body += record.rest
    out = bytearray()
    _write_varint(out, len(body))
    return bytes(out + body)


def _write_bytes(out: bytearray, data: bytes | None) -> None:
    _write_varint(out, -1 if data is None else len(data))
    out += data or b""


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number and where it ends; raises IndexError where the data does, before it."""
    shift = number = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > _MOST_VARINT_BITS:
            raise CorruptRecordError("a number of more than ten bytes")


def _write_varint(out: bytearray, number: int) -> None:
    rest = (number << 1) ^ (number >> 63)
    while rest & ~0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
