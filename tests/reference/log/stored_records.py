"""Every record of a log, read as a consumer does."""

from __future__ import annotations

from typing import NamedTuple

from nemesis.reference.log.log import Log
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.protocol.records import read_records

MANY = 2**31


class Held(NamedTuple):
    """A record that a log has."""

    offset: int
    key: bytes | None
    value: bytes | None


def held(log: Log) -> list[Held]:
    """Every record of a log, read as a consumer does."""
    stored: list[Held] = []
    offset = log.log_start_offset
    while data := log.read(offset, MANY, MANY, min_one_message=True):
        for header in iter_batches(data):
            assert header.last_offset >= offset
            batch = data[header.position : header.position + header.size_in_bytes]
            records = read_records(batch, header)
            stored += [Held(record.offset, record.key, value_of(record.rest)) for record in records]
            offset = header.last_offset + 1
    return stored


def value_of(rest: bytes) -> bytes | None:
    """The value of a record whose numbers are all below 64."""
    key_length = rest[1] // 2
    value_length = rest[2 + key_length]
    start = 3 + key_length
    return None if value_length & 1 else rest[start : start + value_length // 2]
