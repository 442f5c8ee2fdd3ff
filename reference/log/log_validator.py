"""What a batch must be for a leader to append it: not too large, well counted, with a whole producer or none.

Source: kafka's LogValidator and UnifiedLog.analyzeAndValidateRecords of Kafka 3.9, for batches that stay opaque
unless their topic is compacted.
"""

from __future__ import annotations

from enum import Enum

from nemesis.reference.log.errors import InvalidRecordError, RecordTooLargeError
from nemesis.reference.log.producer_state_entry import NO_PRODUCER_ID
from nemesis.reference.protocol.record_batch import RecordBatchHeader
from nemesis.reference.protocol.records import read_records


class AppendOrigin(Enum):
    """The writer of a batch (Kafka's AppendOrigin)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"
    """The leader, whose batches a follower appends as they are, or this log itself, when it is read again."""


def validate_batch(header: RecordBatchHeader, max_message_bytes: int, origin: AppendOrigin) -> None:
    """Raise RecordTooLargeError or InvalidRecordError unless the batch may be appended. Its CRC is not looked at."""
    if header.size_in_bytes > max_message_bytes:
        raise RecordTooLargeError(
            f"a batch of {header.size_in_bytes} bytes exceeds {max_message_bytes}"
        )
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecordError(
            f"{header.record_count} records, but {header.last_offset_delta + 1} offsets"
        )
    if origin is not AppendOrigin.CLIENT:
        return
    if header.is_control:
        raise InvalidRecordError("clients may not write control batches")
    if header.producer_id > NO_PRODUCER_ID and (
        header.base_sequence < 0 or header.producer_epoch < 0
    ):
        raise InvalidRecordError(
            f"producer {header.producer_id} sends epoch {header.producer_epoch} and sequence number"
            f" {header.base_sequence}"
        )


def validate_keys(records: bytes, header: RecordBatchHeader) -> None:
    """Raise InvalidRecordError unless each record of the batch has a key, CorruptRecordError if they cannot be read.

    ``header.position`` says where the batch is.
    """
    batch = records[header.position : header.position + header.size_in_bytes]
    if any(record.key is None for record in read_records(batch, header)):
        raise InvalidRecordError("a compacted topic cannot take a record without a key")
