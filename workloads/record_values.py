"""A workload's records: each has a number that no other record of the run has, and all else follows from the number.

A plain record has its number as its value, padded. A record of another ``RecordShape`` also has the number in its
first header, so that a record without a value (a tombstone) has one too; a reader derives key, value and headers from
the number and compares them with what it was given.
"""

from __future__ import annotations

from hashlib import shake_128
from typing import Final, NamedTuple

from nemesis.workloads.kafka.errors import ForeignRecord
from nemesis.workloads.kafka.record_batch import Headers, NewRecord, Record

NUMBER: Final = "number"
"""The name of the header that has the record's number."""
LARGE_BYTES: Final = 300_000
"""The size of a large value, more than a fetch returns (``reads.MAX_BYTES``) unless the record is the first there."""


class RecordShape(NamedTuple):
    """What the records of a run look like."""

    bytes: int
    """The size of a value."""
    headers: int = 0
    """The most headers of a record, without the one that has its number."""
    tombstone_percent: int = 0
    """How many of 100 records have no value."""
    null_key_percent: int = 0
    """How many of 100 records have no key."""
    large_every: int = 0
    """Each record whose number is a multiple of this has a large value; 0: none has."""

    @property
    def is_plain(self) -> bool:
        """Whether a record has its number in its value alone."""
        return not (
            self.headers or self.tombstone_percent or self.null_key_percent or self.large_every
        )


def new_record(number: int, shape: RecordShape, key: bytes) -> NewRecord:
    """Return a record to be sent; ``key`` is its key unless records of this number have none."""
    if shape.is_plain:
        return NewRecord(key, _value(number, shape.bytes))
    if _is_large(number, shape):
        value: bytes | None = _large_value(number)
    else:
        value = None if _is_tombstone(number, shape) else _value(number, shape.bytes)
    return NewRecord(None if _has_no_key(number, shape) else key, value, _headers(number, shape))


def number_of(record: Record, shape: RecordShape) -> int:
    """Return the number of a record that was read; raises ``ForeignRecord`` if no producer here wrote it like this."""
    if shape.is_plain:
        return _number_in((record.value or b"").rstrip(b"."))
    name, digits = record.headers[0] if record.headers else ("", None)
    number = _number_in(digits)
    expected = new_record(number, shape, record.key or b"")
    if name != NUMBER or expected != (record.key, record.value, record.headers):
        raise ForeignRecord
    return number


def _value(number: int, size: int) -> bytes:
    return str(number).encode().ljust(size, b".")


def _large_value(number: int) -> bytes:
    """Return bytes that no codec makes smaller."""
    return shake_128(str(number).encode()).digest(LARGE_BYTES)


def _is_large(number: int, shape: RecordShape) -> bool:
    return shape.large_every > 0 and number % shape.large_every == 0


def _number_in(digits: bytes | None) -> int:
    if not digits or not digits.isdigit():
        raise ForeignRecord
    return int(digits)


# 37 and 61 share no divisor with 100: among 100 successive numbers each remainder occurs once.
def _is_tombstone(number: int, shape: RecordShape) -> bool:
    return number * 37 % 100 < shape.tombstone_percent


def _has_no_key(number: int, shape: RecordShape) -> bool:
    return number * 61 % 100 < shape.null_key_percent


def _headers(number: int, shape: RecordShape) -> Headers:
    """The number, then headers of which every third has no value; names repeat, as Kafka allows."""
    others = (
        (f"header-{index % 2}", None if (number + index) % 3 == 0 else b"%d-%d" % (number, index))
        for index in range(number % (shape.headers + 1))
    )
    return ((NUMBER, str(number).encode()), *others)
