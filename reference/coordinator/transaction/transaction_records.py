"""The records of the transaction log: keys and values as Kafka 3.9 writes them, and all versions that it reads.

    key 0       transactional id
    value       written in version 0; version 1 is compact
                producer id int64 | producer epoch int16 | time-out int32 | state int8
                | partitions?: topic, partition ids int32 | last update timestamp int64 | start timestamp int64

A value in the state Empty has no partitions (null). A tombstone removes the transactional id.

Source: TransactionLogKey, TransactionLogValue (JSON schemas) and kafka.coordinator.transaction.TransactionLog of Kafka
3.9. kio has no classes for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from nemesis.reference.coordinator.record_fields import RecordReader, string_field
from nemesis.reference.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    Transition,
)
from nemesis.reference.coordinator.transaction.transaction_states import IDS, TransactionState
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.record_batch import CorruptRecordError

_VERSION: Final = 0
_FIRST_COMPACT_VERSION: Final = 1
_HIGHEST_VALUE_VERSION: Final = 1
_INT8: Final = Struct(">b")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_PRODUCER: Final = Struct(">hqhib")
"""Version, producer id, producer epoch, time-out, state."""
_TIMES: Final = Struct(">qq")
_STATES: Final = {number: state for state, number in IDS.items()}


def transaction_key(transactional_id: str) -> bytes:
    return _INT16.pack(_VERSION) + string_field(transactional_id)


def read_transaction_key(key: bytes) -> str | None:
    """Return the transactional id; None for a key of a version that Kafka 3.9 does not know either.

    Raises CorruptRecordError.
    """
    reader = RecordReader(key)
    if reader.number(_INT16) != _VERSION:
        return None
    return reader.text()


def transaction_value(transition: Transition) -> bytes:
    partitions = None if transition.state is TransactionState.EMPTY else transition.partitions
    return b"".join(
        (
            _PRODUCER.pack(
                _VERSION,
                transition.producer_id,
                transition.producer_epoch,
                transition.timeout_ms,
                IDS[transition.state],
            ),
            _partitions(partitions),
            _TIMES.pack(transition.last_update_timestamp, transition.start_timestamp),
        )
    )


def read_transaction_value(transactional_id: str, value: bytes) -> TransactionMetadata:
    """Raises CorruptRecordError, also for a version that Kafka 3.9 does not know."""
    reader = RecordReader(value)
    reader.version(_HIGHEST_VALUE_VERSION, _FIRST_COMPACT_VERSION)
    producer_id, epoch = reader.number(_INT64), reader.number(_INT16)
    timeout_ms, number = reader.number(_INT32), reader.number(_INT8)
    if number not in _STATES:
        raise CorruptRecordError(f"{transactional_id} has state {number}: expected 0 to 7")
    topics = reader.nullable_array(lambda: _read_topic(reader)) or ()
    last_update, start = reader.number(_INT64), reader.number(_INT64)
    state = _STATES[number]
    named = () if state is TransactionState.EMPTY else topics
    return TransactionMetadata(
        transactional_id,
        producer_id,
        timeout_ms,
        last_update,
        producer_epoch=epoch,
        state=state,
        partitions=frozenset(key for topic in named for key in topic),
        start_timestamp=start,
    )


def _partitions(partitions: Iterable[TopicPartition] | None) -> bytes:
    if partitions is None:
        return _INT32.pack(-1)
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return _INT32.pack(len(topics)) + b"".join(
        string_field(topic) + _INT32.pack(len(numbers)) + b"".join(map(_INT32.pack, numbers))
        for topic, numbers in topics.items()
    )


def _read_topic(reader: RecordReader) -> list[TopicPartition]:
    topic = reader.text()
    numbers = reader.array(lambda: reader.number(_INT32))
    reader.skip_tags()
    return [TopicPartition(topic, number) for number in numbers]
