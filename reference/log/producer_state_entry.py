"""What a log remembers of one producer: its epoch and its last five batches.

Five, because a producer has at most five requests in flight (``max.in.flight.requests.per.connection``): what it may
send again is among them. Sequence numbers count records and go from 2^31 − 1 on to 0.

Source: kafka's ProducerStateEntry and BatchMetadata (KIP-98).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nemesis.reference.protocol.record_batch import RecordBatchHeader

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
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
    """Of its last batch, ms: the time that it is remembered from on."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

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
    batch = BatchMetadata(
        increment_sequence(header.base_sequence, header.last_offset_delta),
        header.last_offset,
        header.last_offset_delta,
        header.max_timestamp,
    )
    kept: tuple[BatchMetadata, ...] = ()
    if before is not None and before.producer_epoch == header.producer_epoch:
        kept = before.batches[-(NUM_BATCHES_TO_RETAIN - 1) :]
    return ProducerStateEntry(
        header.producer_id, header.producer_epoch, (*kept, batch), header.max_timestamp
    )
