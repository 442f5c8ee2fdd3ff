"""Which batches of a producer a leader accepts: the rules of epochs and sequence numbers of Kafka 3.9.

* An epoch below the one remembered: ``InvalidProducerEpochError``.
* A higher epoch starts with sequence number 0, the same epoch goes on where its last batch ended, else:
  ``OutOfOrderSequenceError``.
* Of a producer that is not remembered, because it is new here, has expired, or its records are gone, any sequence
  number is accepted (KIP-360). So UNKNOWN_PRODUCER_ID is never answered, as since Kafka 2.5.

A follower checks nothing: what its leader has, it takes.

Source: kafka's ProducerAppendInfo. Limit: no transactions, so no markers that would raise an epoch.
"""

from __future__ import annotations

from nemesis.reference.log.errors import (
    InvalidProducerEpochError,
    OutOfOrderSequenceError,
)
from nemesis.reference.log.producer_state_entry import (
    ProducerStateEntry,
    increment_sequence,
)
from nemesis.reference.protocol.record_batch import RecordBatchHeader


def check_sequence(entry: ProducerStateEntry | None, header: RecordBatchHeader) -> None:
    """Raise InvalidProducerEpochError or OutOfOrderSequenceError unless the batch continues what is remembered."""
    if entry is None:
        return
    if header.producer_epoch < entry.producer_epoch:
        raise InvalidProducerEpochError(
            f"producer {entry.producer_id} sends epoch {header.producer_epoch}, and epoch"
            f" {entry.producer_epoch} has been seen"
        )
    is_new_epoch = header.producer_epoch > entry.producer_epoch
    expected = 0 if is_new_epoch else increment_sequence(entry.last_sequence, 1)
    if header.base_sequence != expected:
        raise OutOfOrderSequenceError(
            f"producer {entry.producer_id} sends sequence number {header.base_sequence} of epoch"
            f" {header.producer_epoch}, expected is {expected}"
        )
