"""What a cleaner leaves of a record batch.

A record stays if it is the last of its key as far as the offset map knows, or lies behind what the map knows. One
without a value (a tombstone) stays even then only until the delete horizon: the first cleaning that comes by it sets
that to ``delete.retention.ms`` later, in the batch itself, so that a consumer has that long to see it (KIP-534). A
record without a key goes: a compacted topic takes none, but it may not always have been one. All records of an aborted
transaction go.

A batch without records stays as an empty one while it is the last of a producer that is remembered: a broker that comes
to lead would else not know the sequence numbers. What nothing is taken from stays as it is, byte by byte, and so do
control batches.

Source: kafka's Cleaner.cleanInto and shouldRetainRecord, and MemoryRecords.filterTo, of Kafka 3.9. Limit: markers of
transactions without records stay; Kafka removes them after their delete horizon.
"""

from __future__ import annotations

from collections.abc import Mapping

from nemesis.reference.log.offset_map import OffsetMap
from nemesis.reference.log.transaction_index import AbortedRanges
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
        aborted: AbortedRanges,
        last_offsets: Mapping[int, int],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """``last_offsets`` are those of the producers that are remembered, by producer id."""
        self._offset_map = offset_map
        self._aborted = aborted
        self._last_offsets = last_offsets
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def retained(self, data: bytes, header: RecordBatchHeader) -> bytes:
        """Return what is left of the batch at ``header.position``; nothing at all, the same bytes, or a new batch.

        Raises CorruptRecordError when it is damaged: a new CRC would hide that.
        """
        batch = data[header.position : header.position + header.size_in_bytes]
        if header.is_control or header.base_offset > self._offset_map.latest_offset:
            return batch
        verify_crc(data, header)
        horizon_ms = delete_horizon_ms(header)
        records = read_records(batch, header)
        if self._aborted.contain(header):
            kept = []
        else:
            kept = [record for record in records if self._stays(record, horizon_ms)]
        if not kept:
            is_last = self._last_offsets.get(header.producer_id) == header.last_offset
            return b"" if not is_last else batch if not records else emptied(header)
        needs_horizon = horizon_ms is None and not all(record.has_value for record in kept)
        if len(kept) == len(records) and not needs_horizon:
            return batch
        if needs_horizon:
            horizon_ms = self._now_ms + self._delete_retention_ms
        return rebuilt(header, kept, horizon_ms=horizon_ms)

    def _stays(self, record: Record, horizon_ms: int | None) -> bool:
        if record.offset > self._offset_map.latest_offset:
            return True
        if record.key is None or record.offset < self._offset_map.get(record.key):
            return False
        return record.has_value or horizon_ms is None or self._now_ms < horizon_ms
