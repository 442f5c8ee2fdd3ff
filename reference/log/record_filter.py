"""What a cleaner leaves of a record batch.

A record stays if it is the last of its key as far as the offset map knows, or lies behind what the map knows. One
without a value (a tombstone) stays even then only until the delete horizon: the first cleaning that comes by it sets
that to ``delete.retention.ms`` later, in the batch itself, so that a consumer has that long to see it (KIP-534). A
record without a key goes: a compacted topic takes none, but it may not always have been one. All records of an aborted
transaction go. A marker of a transaction without records goes as a tombstone does, after its delete horizon.

A batch without records stays as an empty one while it is the last of a producer that is remembered: a broker that comes
to lead would else not know the sequence numbers. A marker stays while its producer is remembered by markers alone, for
the epochs that it contains. What nothing is taken from stays as it is, byte by byte.

Source: kafka's Cleaner.cleanInto and shouldRetainRecord, and MemoryRecords.filterTo, of Kafka 3.9. Where it differs:
Kafka leaves an empty control batch of the last marker of a producer. An epoch cannot be read from that.
"""

from __future__ import annotations

from collections.abc import Mapping

from nemesis.reference.log.cleaned_transactions import CleanedTransactions
from nemesis.reference.log.offset_map import OffsetMap
from nemesis.reference.log.producer_state_entry import ProducerStateEntry
from nemesis.reference.protocol.record_batch import RecordBatchHeader, verify_crc
from nemesis.reference.protocol.records import (
    Record,
    delete_horizon_ms,
    emptied,
    read_records,
    rebuilt,
)


class RecordFilter:
    """Of one cleaning of one log."""

    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        transactions: CleanedTransactions,
        producers: Mapping[int, ProducerStateEntry],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """``producers`` are those that are remembered, by id."""
        self._offset_map = offset_map
        self.transactions = transactions
        self._producers = producers
        self.now_ms = now_ms
        """When the cleaning began, ms since 1970."""
        self._delete_retention_ms = delete_retention_ms

    def retained(self, data: bytes, header: RecordBatchHeader) -> bytes:
        """Return what is left of the batch at ``header.position``; nothing at all, the same bytes, or a new batch.

        All batches of the log have to come by, in its sequence. Raises CorruptRecordError when one of which something
        is taken is damaged: a new CRC would hide that.
        """
        batch = data[header.position : header.position + header.size_in_bytes]
        if header.is_control:
            return self._retained_marker(batch, header)
        is_aborted = self.transactions.pass_data(header)
        if header.base_offset > self._offset_map.latest_offset:
            return batch
        verify_crc(data, header)
        return self._retained_data(batch, header, is_aborted)

    def _retained_marker(self, batch: bytes, header: RecordBatchHeader) -> bytes:
        has_records = self.transactions.pass_marker(header)
        if has_records or self._tells_of_producer(header):
            return batch
        horizon_ms = delete_horizon_ms(header)
        if horizon_ms is None:
            verify_crc(batch, header._replace(position=0))
            return rebuilt(header, read_records(batch, header), horizon_ms=self._new_horizon_ms())
        return batch if self.now_ms < horizon_ms else b""

    def _tells_of_producer(self, marker: RecordBatchHeader) -> bool:
        """Whether all that is remembered of the producer are markers, of this epoch."""
        producer = self._producers.get(marker.producer_id)
        if producer is None or producer.batches:
            return False
        return producer.producer_epoch == marker.producer_epoch

    def _retained_data(self, batch: bytes, header: RecordBatchHeader, is_aborted: bool) -> bytes:
        horizon_ms = delete_horizon_ms(header)
        records = read_records(batch, header)
        kept = (
            [] if is_aborted else [record for record in records if self._stays(record, horizon_ms)]
        )
        if not kept:
            is_last = self._is_last_of_producer(header)
            return b"" if not is_last else batch if not records else emptied(header)
        needs_horizon = horizon_ms is None and not all(record.has_value for record in kept)
        if len(kept) == len(records) and not needs_horizon:
            return batch
        return rebuilt(
            header, kept, horizon_ms=self._new_horizon_ms() if needs_horizon else horizon_ms
        )

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        producer = self._producers.get(header.producer_id)
        if producer is None or not producer.batches:
            return False
        return producer.batches[-1].last_offset == header.last_offset

    def _new_horizon_ms(self) -> int:
        return self.now_ms + self._delete_retention_ms

    def _stays(self, record: Record, horizon_ms: int | None) -> bool:
        if record.offset > self._offset_map.latest_offset:
            return True
        if record.key is None or record.offset < self._offset_map.get(record.key):
            return False
        return record.has_value or horizon_ms is None or self.now_ms < horizon_ms
