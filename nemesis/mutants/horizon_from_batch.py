"""A delete horizon is counted from the largest time of the batch, not from the compaction that sets it.

A tombstone that waits for its first compaction, because its segment is not full or its broker was away, is then removed
too early: a consumer that has read an older record of the key does not learn of the deletion. KIP-534 counts from the
compaction.

Must be caught by: tombstones-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.protocol.records import delete_horizon_ms


def _from_batch(correct: Callable[[Any, bytes, Any, bool], bytes]) -> Callable[..., bytes]:
    def retained_data(record_filter: Any, batch: bytes, header: Any, is_aborted: bool) -> bytes:
        if delete_horizon_ms(header) is not None:
            return correct(record_filter, batch, header, is_aborted)
        now_ms = record_filter.now_ms
        record_filter.now_ms = header.max_timestamp
        try:
            return correct(record_filter, batch, header, is_aborted)
        finally:
            record_filter.now_ms = now_ms

    return retained_data


MUTANT = Mutant(
    name="horizon-from-batch",
    property="tombstones-kept",
    summary="a delete horizon is counted from the time of the batch, not from the compaction",
    replacements=(
        Replacement(
            "nemesis.reference.log.record_filter",
            "RecordFilter._retained_data",
            _from_batch,
            is_comparable=True,
        ),
    ),
    scenario="log-compaction",
)
