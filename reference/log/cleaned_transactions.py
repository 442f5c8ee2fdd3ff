"""The transactions that a cleaner comes by, in the sequence of the log: whose records go, and which markers may go.

All records of an aborted transaction go. A marker may go once the cleaner has come by no batch of its transaction. So
it outlasts the records by one cleaning, and then by its delete horizon (``record_filter``). A reader that was given
the records still finds the marker.

The index has an entry of an aborted transaction as long as there were records. It must not outlast the marker: readers
would take the producer's later records for aborted ones.

Source: kafka's CleanedTransactionMetadata of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.reference.log.transaction_index import AbortedRanges
from nemesis.reference.model import AbortedTransaction
from nemesis.reference.protocol.record_batch import RecordBatchHeader


class CleanedTransactions:
    """Of one cleaning, which comes by each batch of the log once, from the first one on."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """``aborted`` are those of which the index of the log has an entry."""
        self._aborted = AbortedRanges(aborted)
        self._with_batches: set[int] = set()
        """Producers of whose present transaction there was a batch."""
        self._markers: set[int] = set()
        """Offsets of the markers that end these transactions."""

    def pass_data(self, header: RecordBatchHeader) -> bool:
        """Note a batch of data; return whether its transaction is aborted."""
        if header.is_transactional:
            self._with_batches.add(header.producer_id)
        return self._aborted.contain(header)

    def pass_marker(self, header: RecordBatchHeader) -> bool:
        """Note a marker; return whether there was a batch of its transaction."""
        has_batches = header.producer_id in self._with_batches
        if has_batches:
            self._with_batches.remove(header.producer_id)
            self._markers.add(header.base_offset)
        return has_batches

    def had_batches(self, transaction: AbortedTransaction) -> bool:
        """Whether the cleaner has come by the marker of this transaction, and by a batch of it before."""
        return transaction.last_offset in self._markers
