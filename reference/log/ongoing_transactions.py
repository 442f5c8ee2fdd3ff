"""The transactions of one log that consumers with ``read_committed`` may not read yet.

A transaction is undecided from its first batch to its marker, and unreplicated from there until the high watermark has
passed the marker: until then the marker may be truncated. The first offset of all of them is the first unstable offset.

What is rebuilt after a restart knows no unreplicated transaction with a marker below the newest snapshot, as in Kafka:
its outcome is known all the same.

Source: kafka's ProducerStateManager of Kafka 3.9. Where it differs: after a truncation, unreplicated transactions stay
unreplicated if their markers are still there.
"""

from __future__ import annotations

from collections.abc import Iterable

from nemesis.reference.log.producer_append_info import CompletedTransaction, OpenedTransaction
from nemesis.reference.log.producer_state_entry import ProducerStateEntry


class OngoingTransactions:
    """Of one log."""

    def __init__(self) -> None:
        self._undecided: dict[int, int] = {}
        """Producer ids by first offset, in ascending sequence."""
        self._unreplicated: dict[int, int] = {}
        """Offsets of markers by first offset."""
        self.first_unstable_offset: int | None = None

    def open(self, transaction: OpenedTransaction) -> None:
        """Note the first batch of a transaction, which is the last one of the log."""
        self._undecided[transaction.first_offset] = transaction.producer_id
        self._find_first()

    def complete(self, transaction: CompletedTransaction) -> int:
        """Note a marker; return the last stable offset behind it, if the high watermark were beyond."""
        del self._undecided[transaction.first_offset]
        self._unreplicated[transaction.first_offset] = transaction.last_offset
        self._find_first()
        return next(iter(self._undecided), transaction.last_offset + 1)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget the transactions whose markers are below the high watermark."""
        replicated = [
            first_offset
            for first_offset, marker in self._unreplicated.items()
            if marker < high_watermark
        ]
        for first_offset in replicated:
            del self._unreplicated[first_offset]
        if replicated:
            self._find_first()

    def reload(self, entries: Iterable[ProducerStateEntry], log_end_offset: int) -> None:
        """Go back to these producers, of a log that ends there now."""
        undecided = sorted(
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in entries
            if entry.has_open_transaction
        )
        self._undecided = dict(undecided)
        self._unreplicated = {
            first_offset: marker
            for first_offset, marker in self._unreplicated.items()
            if marker < log_end_offset
        }
        self._find_first()

    def _find_first(self) -> None:
        firsts = [*self._unreplicated]
        if self._undecided:
            firsts.append(next(iter(self._undecided)))
        self.first_unstable_offset = min(firsts, default=None)
