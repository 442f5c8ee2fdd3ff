"""The header of a record batch (magic 2), read and rewritten without touching the records behind it.

A broker treats a batch as opaque bytes: it verifies the CRC-32C, then writes its own base offset and partition
leader epoch into the header. The CRC starts behind those two fields, so it stays valid and a batch has the same
CRC on every replica. Source: the message format of Kafka's protocol documentation, version 2.

    offset  0  base_offset             int64      offset 27  base_timestamp   int64 (ms)
            8  batch_length            int32             35  max_timestamp    int64 (ms)
           12  partition_leader_epoch  int32             43  producer_id      int64
           16  magic                   int8              51  producer_epoch   int16
           17  crc                     uint32            53  base_sequence    int32
           21  attributes              int16             57  record_count     int32
           23  last_offset_delta       int32             61  records

Errors::

    RecordError
    ├── CorruptRecordError                 cut short, impossible lengths, or the CRC does not match
    ├── UnsupportedForMessageFormatError   a magic before 2
    └── InvalidRecordError                 well-formed, but not something that a client may produce

Limits: messages of magic 0 and 1 are refused, records are never decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from crc32c import crc32c
from kio.schema.errors import ErrorCode

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Base offset and length: what ``batch_length`` does not count."""
CURRENT_MAGIC: Final = 2
CRC_START: Final = 21
"""Where in a batch that begins what the CRC covers, which is all the rest of it."""

_HEADER: Final = Struct(">qiibIhiqqqhii")
_OFFSET_LENGTH_EPOCH: Final = Struct(">qii")
_LENGTH: Final = Struct(">i")
_LENGTH_POSITION: Final = 8
_MAGIC_POSITION: Final = 16
TRANSACTIONAL_FLAG: Final = 0x10
"""Of the attributes: the batch belongs to a transaction."""
CONTROL_FLAG: Final = 0x20
"""Of the attributes: the batch holds a record that brokers write for brokers and clients, such as a marker."""


class RecordError(Exception):
    """The bytes are no record batches that a log may hold. Nothing was appended."""

    error_code: ClassVar[ErrorCode] = ErrorCode.invalid_record


class CorruptRecordError(RecordError):
    """The bytes changed on their way (or never were a batch). The sender may send them again."""

    error_code = ErrorCode.corrupt_message


class UnsupportedForMessageFormatError(RecordError):
    """The batch is of a format older than magic 2. Sending it again does not help."""

    error_code = ErrorCode.unsupported_for_message_format


class InvalidRecordError(RecordError):
    """The batch is intact but a client may not produce it: empty, miscounted, or a control batch."""


class RecordBatchHeader(NamedTuple):
    """The fields of one header, as stored; ``position`` says where the batch starts in what was read."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    position: int

    @property
    def size_in_bytes(self) -> int:
        """Of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    def assigned(self, base_offset: int, leader_epoch: int) -> RecordBatchHeader:
        """The header that a leader makes of it."""
        return RecordBatchHeader(base_offset, self.batch_length, leader_epoch, *self[3:])

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0


def read_header(data: bytes | memoryview, start: int, position: int) -> RecordBatchHeader:
    """Return the header that starts at ``data[at]``, unchecked; its ``position`` is the one given.

    Raises ``struct.error`` when fewer than 61 bytes are left.
    """
    # What ``_make`` does, without a call in between: headers are read for every append and fetch.
    return tuple.__new__(RecordBatchHeader, (*_HEADER.unpack_from(data, start), position))


def iter_batches(data: bytes | memoryview) -> Iterator[RecordBatchHeader]:
    """Yield the header of each batch; ``position`` counts from the start of ``data``.

    Raises CorruptRecordError where the bytes do not hold a whole batch, UnsupportedForMessageFormatError at an old
    magic. The CRC is not looked at: see ``verify_crc``.
    """
    end = len(data)
    position = 0
    while position < end:
        if end - position <= _MAGIC_POSITION:
            raise CorruptRecordError(f"{end - position} bytes at {position} are no record batch")
        magic = data[position + _MAGIC_POSITION]
        if magic < CURRENT_MAGIC:
            raise UnsupportedForMessageFormatError(f"record batch at {position} has magic {magic}")
        if magic != CURRENT_MAGIC or end - position < HEADER_SIZE:
            raise CorruptRecordError(f"no header of a record batch at {position}")
        header = read_header(data, position, position)
        size = header.batch_length + LOG_OVERHEAD
        if not is_plausible(header) or size > end - position:
            raise CorruptRecordError(
                f"record batch at {position} of {end} bytes says it has {size} bytes"
                f" and {header.last_offset_delta + 1} offsets"
            )
        yield header
        position += size


def is_plausible(header: RecordBatchHeader) -> bool:
    """Whether the lengths could be those of a batch; says nothing about the records."""
    return (
        header.magic == CURRENT_MAGIC
        and header.batch_length >= HEADER_SIZE - LOG_OVERHEAD
        and header.last_offset_delta >= 0
    )


def crc_matches(data: memoryview, header: RecordBatchHeader, index: int) -> bool:
    """Whether the CRC-32C of the batch that starts at ``data[at]`` is the one in its header."""
    return (
        crc32c(data[index + CRC_START : index + header.batch_length + LOG_OVERHEAD]) == header.crc
    )


def verify_crc(data: bytes | memoryview, header: RecordBatchHeader) -> None:
    """Raise CorruptRecordError unless the batch at ``header.position`` of ``data`` is intact."""
    if not crc_matches(memoryview(data), header, header.position):
        raise CorruptRecordError(
            f"record batch at {header.position}, base offset {header.base_offset}: CRC does not match"
        )


def complete_size(data: bytes | memoryview) -> int:
    """Return how many leading bytes are whole batches by their lengths; a fetch may cut the last one short."""
    end = len(data)
    position = 0
    while end - position >= HEADER_SIZE:
        length: int = _LENGTH.unpack_from(data, position + _LENGTH_POSITION)[0]
        size = length + LOG_OVERHEAD
        if size < HEADER_SIZE or size > end - position:
            break
        position += size
    return position


def assign(
    records: bytes, headers: Iterable[RecordBatchHeader], base_offset: int, leader_epoch: int
) -> tuple[bytes, list[RecordBatchHeader]]:
    """Return the batches with consecutive offsets from ``base_offset`` on and this partition leader epoch.

    ``headers`` are those of ``records``, in order; the new ones are returned too. The records themselves are copied
    once and not looked at.
    """
    view = memoryview(records)
    parts: list[bytes | memoryview] = []
    assigned: list[RecordBatchHeader] = []
    offset = base_offset
    for header in headers:
        start = header.position
        parts.append(_OFFSET_LENGTH_EPOCH.pack(offset, header.batch_length, leader_epoch))
        parts.append(view[start + _MAGIC_POSITION : start + header.size_in_bytes])
        assigned.append(header.assigned(offset, leader_epoch))
        offset += header.last_offset_delta + 1
    return b"".join(parts), assigned
