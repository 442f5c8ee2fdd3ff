"""Which batches of a producer a leader accepts: the rules of epochs, sequence numbers and transactions of Kafka 3.9.

* An epoch below the one remembered: ``InvalidProducerEpochError``, also of a marker.
* A higher epoch starts with sequence number 0, the same epoch goes on where its last batch ended, else:
  ``OutOfOrderSequenceError``. Only batches of clients have sequence numbers that count.
* Of a producer that is not remembered, because it is new here, has expired, or its records are gone, any sequence
  number is accepted (KIP-360). So UNKNOWN_PRODUCER_ID is never answered, as since Kafka 2.5.
* A batch outside of transactions while one is open: ``InvalidTxnStateError``.
* A batch that opens a transaction without the guard of its verification: ``InvalidTxnStateError`` (KIP-890).
* A sequence number above the lowest one that waits for verification: ``OutOfOrderSequenceError``.
* A marker of a coordinator epoch below that of the last one: ``TransactionCoordinatorFencedError``.

A follower checks nothing: what its leader has, it takes.

Source: kafka's ProducerAppendInfo of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from nemesis.reference.log.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.producer_state_entry import (
    NO_OFFSET,
    NO_PRODUCER_ID,
    ProducerStateEntry,
    appended,
    ended,
    increment_sequence,
)
from nemesis.reference.log.verification_state import VerificationGuard, VerificationStateEntry
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    read_marker,
)
from nemesis.reference.protocol.record_batch import RecordBatchHeader

Updates = Mapping[int, ProducerStateEntry]
"""What becomes of the producers of an append, by producer id."""


class OpenedTransaction(NamedTuple):
    """The first batch of a producer after its last transaction."""

    producer_id: int
    first_offset: int
    producer_epoch: int


class CompletedTransaction(NamedTuple):
    """A transaction with data in this log, and its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    is_aborted: bool


TransactionStep = OpenedTransaction | CompletedTransaction


class WrittenMarker(NamedTuple):
    """A marker in the log, whether or not its producer had a transaction open there."""

    offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_aborted: bool
    first_offset: int
    """Where the transaction begins in this log; −1 if none of its data is there."""


class AnalyzedAppend(NamedTuple):
    """What an append means for its producers and their transactions; the latter in the sequence of the log."""

    producers: Updates
    transactions: tuple[TransactionStep, ...] = ()
    markers: tuple[WrittenMarker, ...] = ()


def analyzed(
    known: Mapping[int, ProducerStateEntry],
    records: bytes,
    headers: Iterable[RecordBatchHeader],
    origin: AppendOrigin,
    verifications: Mapping[int, VerificationStateEntry] = MappingProxyType({}),
) -> AnalyzedAppend:
    """Return the meaning of batches that have their offsets, some of them of transactions.

    ``verifications`` are those under way, by producer id.

    Raises InvalidProducerEpochError, OutOfOrderSequenceError, InvalidTxnStateError or TransactionCoordinatorFencedError
    unless they are replicated; CorruptRecordError for a control batch with another record than a marker.
    """
    producers: dict[int, ProducerStateEntry] = {}
    steps: list[TransactionStep] = []
    markers: list[WrittenMarker] = []
    is_checked = origin is not AppendOrigin.REPLICATION
    for header in headers:
        producer_id = header.producer_id
        if producer_id <= NO_PRODUCER_ID:
            continue
        before = producers.get(producer_id) or known.get(producer_id)
        if header.is_control:
            batch = records[header.position : header.position + header.size_in_bytes]
            if (marker := read_marker(batch, header)) is None:
                continue
            if is_checked and before is not None:
                check_marker(before, header, marker)
            producers[producer_id] = ended(before, header, marker.coordinator_epoch)
            markers.append(_written(before, header, marker))
            if before is not None and before.has_open_transaction:
                steps.append(_completed(before, header, marker))
        else:
            if is_checked:
                check_batch(before, header, origin)
                if origin is AppendOrigin.CLIENT:
                    check_lowest_sequence(verifications.get(producer_id), header)
            after = producers[producer_id] = appended(before, header)
            if after.has_open_transaction and (before is None or not before.has_open_transaction):
                opened = OpenedTransaction(producer_id, header.base_offset, header.producer_epoch)
                steps.append(opened)
    return AnalyzedAppend(producers, tuple(steps), tuple(markers))


def check_batch(
    entry: ProducerStateEntry | None,
    header: RecordBatchHeader,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> None:
    """Raise an error unless the producer may write the batch."""
    if entry is None:
        return
    if header.producer_epoch < entry.producer_epoch:
        raise _epoch_error(entry, header)
    if origin is AppendOrigin.CLIENT:
        check_sequence(entry, header)
    if entry.current_txn_first_offset != NO_OFFSET and not header.is_transactional:
        raise InvalidTxnStateError(
            f"producer {entry.producer_id} has a transaction open since offset"
            f" {entry.current_txn_first_offset}, and sends a batch outside of it"
        )


def check_sequence(entry: ProducerStateEntry, header: RecordBatchHeader) -> None:
    """Raise OutOfOrderSequenceError unless the batch continues what is remembered."""
    is_new_epoch = header.producer_epoch > entry.producer_epoch
    expected = 0 if is_new_epoch else increment_sequence(entry.last_sequence, 1)
    if header.base_sequence != expected:
        raise OutOfOrderSequenceError(
            f"producer {entry.producer_id} sends sequence number {header.base_sequence} of epoch"
            f" {header.producer_epoch}, expected is {expected}"
        )


def check_lowest_sequence(
    verification: VerificationStateEntry | None, header: RecordBatchHeader
) -> None:
    """Raise OutOfOrderSequenceError if a batch with a lower sequence number waits for verification."""
    if verification is not None and header.base_sequence > verification.lowest_sequence:
        raise OutOfOrderSequenceError(
            f"producer {header.producer_id} sends sequence number {header.base_sequence}, and"
            f" {verification.lowest_sequence} has not been verified yet"
        )


def check_verified(
    entry: ProducerStateEntry | None,
    header: RecordBatchHeader,
    verification: VerificationStateEntry | None,
    guard: VerificationGuard | None,
) -> None:
    """Raise InvalidTxnStateError if the batch opens a transaction that has not been verified with this guard."""
    if not header.is_transactional or header.is_control or header.producer_id <= NO_PRODUCER_ID:
        return
    if entry is not None and entry.has_open_transaction:
        return
    if guard is None or verification is None or verification.guard is not guard:
        raise InvalidTxnStateError(
            f"producer {header.producer_id} sends a batch that is not part of an ongoing transaction"
        )


def check_marker(
    entry: ProducerStateEntry, header: RecordBatchHeader, marker: EndTransactionMarker
) -> None:
    """Raise InvalidProducerEpochError or TransactionCoordinatorFencedError for a marker that comes too late."""
    if header.producer_epoch < entry.producer_epoch:
        raise _epoch_error(entry, header)
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise TransactionCoordinatorFencedError(
            f"a marker for producer {entry.producer_id} is of coordinator epoch"
            f" {marker.coordinator_epoch}, and epoch {entry.coordinator_epoch} has been seen"
        )


def _epoch_error(entry: ProducerStateEntry, header: RecordBatchHeader) -> InvalidProducerEpochError:
    return InvalidProducerEpochError(
        f"producer {entry.producer_id} sends epoch {header.producer_epoch}, and epoch"
        f" {entry.producer_epoch} has been seen"
    )


def _written(
    before: ProducerStateEntry | None, header: RecordBatchHeader, marker: EndTransactionMarker
) -> WrittenMarker:
    return WrittenMarker(
        header.base_offset,
        header.partition_leader_epoch,
        header.producer_id,
        header.producer_epoch,
        marker.coordinator_epoch,
        marker.control_type is ControlRecordType.ABORT,
        NO_OFFSET if before is None else before.current_txn_first_offset,
    )


def _completed(
    before: ProducerStateEntry, header: RecordBatchHeader, marker: EndTransactionMarker
) -> CompletedTransaction:
    return CompletedTransaction(
        before.producer_id,
        before.current_txn_first_offset,
        header.base_offset,
        marker.control_type is ControlRecordType.ABORT,
    )
