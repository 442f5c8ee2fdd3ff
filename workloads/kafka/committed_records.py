"""The committed records of a fetch: what a consumer with ``isolation.level=read_committed`` returns.

A broker answers such a fetch with all batches below the last stable offset, and with the aborted transactions among
them: each has the id of its producer and its first offset. From this offset on the transactional batches of the
producer are left out, up to its abort marker. Markers are control batches, which have no records for clients.

Source: Fetcher (CompletedFetch) of Kafka 3.9's clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.workloads.kafka.fetches import AbortedTransaction
from nemesis.workloads.kafka.record_batch import (
    Record,
    batch_header,
    control_key,
    read_batch,
    whole_batches,
)

_VERSION_AND_TYPE: Final = struct.Struct(">hh")
_ABORT: Final = 0


def committed(data: bytes, aborted: Iterable[AbortedTransaction]) -> Iterator[Record]:
    """Yield the records of whole batches that are of no aborted transaction. Raises ``BadRecordBatch``."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    left_out: set[int] = set()
    for batch in whole_batches(data):
        header = batch_header(batch)
        while waiting and waiting[-1].first_offset <= header.last_offset:
            left_out.add(waiting.pop().producer_id)
        if header.is_control:
            if _is_abort(control_key(batch)):
                left_out.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in left_out:
            yield from read_batch(batch)


def _is_abort(key: bytes | None) -> bool:
    if key is None or len(key) < _VERSION_AND_TYPE.size:
        return False
    _, kind = _VERSION_AND_TYPE.unpack_from(key)
    return bool(kind == _ABORT)
