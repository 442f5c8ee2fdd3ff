"""The markers that end transactions, and the control batches that hold them (KIP-98).

A control batch has the attributes ``control`` and ``transactional``, the id and the epoch of the producer whose
transaction it ends, no sequence number, and one record:

    key    version int16, type int16: 0 for an abort, 1 for a commit
    value  version int16, epoch of the transaction coordinator int32

A cleaner may have left a control batch without its record: then the whole transaction is gone.

Source: ControlRecordType, EndTransactionMarker and MemoryRecords.withEndTransactionMarker of Kafka 3.9. As there, a
later version of the key or of the value is read like the present one.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from nemesis.reference.protocol.record_batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    CorruptRecordError,
    RecordBatchHeader,
)
from nemesis.reference.protocol.records import new_batch, read_keys_and_values

_VERSION: Final = 0
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_NO_SEQUENCE: Final = -1
_CONTROL_TYPES: Final = (0, 1)


class ControlRecordType(IntEnum):
    """The decision about a transaction."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The end of a transaction, and the epoch of the coordinator that decided it."""

    control_type: ControlRecordType
    coordinator_epoch: int


def end_transaction_batch(
    producer_id: int, producer_epoch: int, marker: EndTransactionMarker, timestamp_ms: int
) -> bytes:
    """Return the control batch that ends the producer's transaction in one partition."""
    key = _KEY.pack(_VERSION, marker.control_type)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return new_batch(
        [(key, value)],
        timestamp_ms,
        attributes=TRANSACTIONAL_FLAG | CONTROL_FLAG,
        producer=(producer_id, producer_epoch, _NO_SEQUENCE),
    )


def read_marker(batch: bytes, header: RecordBatchHeader) -> EndTransactionMarker | None:
    """Return the marker of a control batch, which is whole; None if a cleaner has left no record in it.

    Raises CorruptRecordError for a record that is not a marker.
    """
    pairs = read_keys_and_values(batch, header)
    return marker_of(*pairs[0]) if pairs else None


def marker_of(key: bytes | None, value: bytes | None) -> EndTransactionMarker:
    """Return the marker of a control record; raises CorruptRecordError if the record is not a marker."""
    control_type = control_type_of(key)
    if control_type is None or value is None or len(value) < _VALUE.size:
        raise CorruptRecordError(f"a control record of key {key!r} and value {value!r}")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < _VERSION:
        raise CorruptRecordError(f"a control record whose value is of version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def control_type_of(key: bytes | None) -> ControlRecordType | None:
    """Return the decision in the key of a control record; None if the record is of another type.

    Raises CorruptRecordError if it is not the key of a control record.
    """
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordError(f"a control record of key {key!r}")
    version, number = _KEY.unpack_from(key)
    if version < _VERSION:
        raise CorruptRecordError(f"a control record whose key is of version {version}")
    return ControlRecordType(number) if number in _CONTROL_TYPES else None
