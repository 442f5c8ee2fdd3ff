"""The last batches of each producer among those that a walk over a log has met.

What a log remembers of a producer is no more than its last five batches, so of a million that are walked no more
need to be kept, and nobody has to walk a second time over what recovery has walked. Transactions are the exception:
their markers count, and the batch that each begins with. If there are any, the log is read again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from nemesis.reference.log.producer_state_entry import NO_PRODUCER_ID, NUM_BATCHES_TO_RETAIN
from nemesis.reference.protocol.record_batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    RecordBatchHeader,
)


class RecentBatches:
    """Of every batch from ``start_offset`` on. Batches without a producer are not kept, nor are control batches."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.has_transactions = False
        """Whether a batch was part of a transaction, or a marker."""
        self._by_producer: dict[int, deque[RecordBatchHeader]] = {}

    def add(self, headers: Iterable[RecordBatchHeader]) -> None:
        """Note the next batches of the log."""
        for producer_id, batches in groupby(headers, key=attrgetter("producer_id")):
            if producer_id > NO_PRODUCER_ID:
                kept = self._by_producer.get(producer_id)
                if kept is None:
                    kept = self._by_producer[producer_id] = deque(maxlen=NUM_BATCHES_TO_RETAIN)
                for header in batches:
                    if header.attributes & TRANSACTIONAL_FLAG:
                        self.has_transactions = True
                    if not header.attributes & CONTROL_FLAG:
                        kept.append(header)

    def behind(self, offset: int) -> list[RecordBatchHeader]:
        """The batches that begin at the offset or later: those of one producer in their order."""
        return [
            header
            for batches in self._by_producer.values()
            for header in batches
            if header.base_offset >= offset
        ]
