"""What a log remembers of one producer: its epoch, its last five batches, and its open transaction.

Five, because a producer has at most five requests in flight (``max.in.flight.requests.per.connection``): what it may
send again is among them. Sequence numbers count records and go from 2^31 − 1 on to 0.

A marker ends the transaction. It may raise the producer's epoch, and it has the epoch of the coordinator that wrote it.
The time of a marker counts like that of a batch: else a producer of which only markers are left would expire at once,
and with it the coordinator epoch that fences older coordinators (KAFKA-9144).

Source: kafka's ProducerStateEntry and BatchMetadata (KIP-98).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nemesis.reference.protocol.record_batch import TRANSACTIONAL_FLAG, RecordBatchHeader

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_COORDINATOR_EPOCH: Final = -1
NO_OFFSET: Final = -1
NUM_BATCHES_TO_RETAIN: Final = 5
_MAX_SEQUENCE: Final = 2**31 - 1


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence number that many records later."""
    return (sequence + increment) % (_MAX_SEQUENCE + 1)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """Return the sequence number that many records earlier."""
    return (sequence - decrement) % (_MAX_SEQUENCE + 1)


class BatchMetadata(NamedTuple):
    """One batch: the sequence and the offset of its last record, how far its first one is away, its time in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry(NamedTuple):
    """The producer's present epoch and, oldest first, the last batches of that epoch."""

    producer_id: int
    producer_epoch: int
    batches: tuple[BatchMetadata, ...]
    last_timestamp: int
    """Of its last batch or marker, ms: the time that it is remembered from on."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Of its last marker; −1 before the first."""
    current_txn_first_offset: int = NO_OFFSET
    """Where its open transaction begins; −1 while none is open."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def has_open_transaction(self) -> bool:
        return self.current_txn_first_offset != NO_OFFSET

    def find_duplicate(self, header: RecordBatchHeader) -> BatchMetadata | None:
        """Return the batch of the same epoch and the same sequence numbers, if it is remembered."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first = header.base_sequence
        last = increment_sequence(first, header.last_offset_delta)
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None


def appended(before: ProducerStateEntry | None, header: RecordBatchHeader) -> ProducerStateEntry:
    """Return what is remembered of the producer once this batch of its is in the log."""
    first = header.base_sequence
    batch = BatchMetadata(
        first if first == NO_SEQUENCE else increment_sequence(first, header.last_offset_delta),
        header.last_offset,
        header.last_offset_delta,
        header.max_timestamp,
    )
    kept: tuple[BatchMetadata, ...] = ()
    coordinator_epoch, first_offset = NO_COORDINATOR_EPOCH, NO_OFFSET
    if before is not None:
        coordinator_epoch = before.coordinator_epoch
        first_offset = before.current_txn_first_offset
        if before.producer_epoch == header.producer_epoch:
            kept = before.batches[-(NUM_BATCHES_TO_RETAIN - 1) :]
    if first_offset == NO_OFFSET and header.attributes & TRANSACTIONAL_FLAG:
        first_offset = header.base_offset
    return ProducerStateEntry(
        header.producer_id,
        header.producer_epoch,
        (*kept, batch),
        header.max_timestamp,
        coordinator_epoch,
        first_offset,
    )


def ended(
    before: ProducerStateEntry | None, header: RecordBatchHeader, coordinator_epoch: int
) -> ProducerStateEntry:
    """Return what is remembered of the producer once a marker, in this control batch, is in the log."""
    is_same_epoch = before is not None and before.producer_epoch == header.producer_epoch
    batches = before.batches if before is not None and is_same_epoch else ()
    return ProducerStateEntry(
        header.producer_id, header.producer_epoch, batches, header.max_timestamp, coordinator_epoch
    )
