"""The transactions that one partition of the transaction log holds: the last record of each transactional id counts.

Source: kafka.coordinator.transaction.TransactionStateManager.loadTransactionMetadata of Kafka 3.9.
"""

from __future__ import annotations

from nemesis.reference.coordinator.transaction.transaction_metadata import TransactionMetadata
from nemesis.reference.coordinator.transaction.transaction_records import (
    read_transaction_key,
    read_transaction_value,
)
from nemesis.reference.protocol.record_batch import CorruptRecordError, iter_batches
from nemesis.reference.protocol.records import read_keys_and_values


class LoadedTransactions:
    """What has been read of a log so far."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def take_in(self, records: bytes) -> None:
        """Take in whole batches, in the sequence of the log. Raises CorruptRecordError."""
        for header in iter_batches(records):
            batch = records[header.position : header.position + header.size_in_bytes]
            for key, value in read_keys_and_values(batch, header):
                if key is None:
                    raise CorruptRecordError(f"a record of batch {header.base_offset} has no key")
                transactional_id = read_transaction_key(key)
                if transactional_id is None:
                    continue
                if value is None:
                    self._values.pop(transactional_id, None)
                else:
                    self._values[transactional_id] = value

    def transactions(self) -> dict[str, TransactionMetadata]:
        """Return the transactions by transactional id. Raises CorruptRecordError."""
        return {
            transactional_id: read_transaction_value(transactional_id, value)
            for transactional_id, value in self._values.items()
        }
