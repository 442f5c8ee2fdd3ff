"""Everything that a log refuses or fails at; each class knows its error code on the wire.

LogError
├── KafkaStorageError           the disk failed, or what it holds cannot be read
├── LogDirNotFoundError         no such log directory is configured
├── InconsistentTopicIdError    the log on disk belongs to another incarnation of the topic
├── OffsetOutOfRangeError       a read outside [log start offset, log end offset]
├── OffsetsOutOfOrderError      a follower was given records that do not continue its log
├── RecordTooLargeError         a batch over message.max.bytes
├── RecordBatchListTooLargeError   more bytes in one append than a segment may hold
├── InvalidProducerEpochError   a producer of an epoch that is over
├── OutOfOrderSequenceError     a producer's batch that does not continue its last one
├── InvalidTxnStateError        a batch outside of the transaction that its producer has open
└── TransactionCoordinatorFencedError   a marker of a coordinator that has been replaced
RecordError (reference.protocol.record_batch)
├── CorruptRecordError
├── UnsupportedForMessageFormatError
└── InvalidRecordError
"""

from __future__ import annotations

from typing import ClassVar

from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.record_batch import (
    CorruptRecordError,
    InvalidRecordError,
    RecordError,
    UnsupportedForMessageFormatError,
)

__all__ = [
    "CorruptRecordError",
    "InconsistentTopicIdError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidTxnStateError",
    "KafkaStorageError",
    "LogDirNotFoundError",
    "LogError",
    "OffsetOutOfRangeError",
    "OffsetsOutOfOrderError",
    "OutOfOrderSequenceError",
    "RecordBatchListTooLargeError",
    "RecordError",
    "RecordTooLargeError",
    "TransactionCoordinatorFencedError",
    "UnsupportedForMessageFormatError",
]


class LogError(Exception):
    """A log did not do what it was asked; it is as it was before."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error


class KafkaStorageError(LogError):
    """The medium failed (its OSError is the cause) or a file is malformed. After a failed append the records may
    or may not be there once the broker restarts.

    ``failed_log_dir`` is the log directory whose medium failed; None for a file that is malformed.
    """

    error_code = ErrorCode.kafka_storage_error

    def __init__(self, message: str, *, failed_log_dir: str | None = None) -> None:
        super().__init__(message)
        self.failed_log_dir = failed_log_dir


class LogDirNotFoundError(LogError):
    """A replica is to move to a directory that is not among ``log.dirs``."""

    error_code = ErrorCode.log_dir_not_found


class InconsistentTopicIdError(LogError):
    """partition.metadata names another topic id than the request. The caller's or the log's topic was deleted."""

    error_code = ErrorCode.inconsistent_topic_id


class OffsetOutOfRangeError(LogError):
    """No such offset: below the log start offset or above the log end offset."""

    error_code = ErrorCode.offset_out_of_range


class OffsetsOutOfOrderError(LogError):
    """The leader's batches overlap what is there or one another. The follower must truncate or fetch elsewhere."""


class RecordTooLargeError(LogError):
    """One batch exceeds message.max.bytes."""

    error_code = ErrorCode.message_too_large


class RecordBatchListTooLargeError(LogError):
    """One append exceeds log.segment.bytes."""

    error_code = ErrorCode.record_list_too_large


class InvalidProducerEpochError(LogError):
    """A newer instance of the producer has written: this one is fenced, whoever sends for it."""

    error_code = ErrorCode.invalid_producer_epoch


class OutOfOrderSequenceError(LogError):
    """Batches before this one are missing, or it is older than the last five of its producer."""

    error_code = ErrorCode.out_of_order_sequence_number


class InvalidTxnStateError(LogError):
    """The producer has a transaction open, and the batch is not part of it."""

    error_code = ErrorCode.invalid_txn_state


class TransactionCoordinatorFencedError(LogError):
    """A newer coordinator of the producer's transactions has written a marker: the older one is fenced."""

    error_code = ErrorCode.transaction_coordinator_fenced
