"""A replica that becomes a follower cuts its log back to its own high watermark.

So did Kafka before KIP-101 (KAFKA-1211, up to 0.10.2, mended in 0.11 by asking the leader where the epoch
ended). A follower's high watermark lags behind the leader's, so records that it acknowledged and that are
committed go away while it stays in the ISR; if it is elected before it has fetched them again, they are lost.

Must be caught by: no-truncation-below-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _to_high_watermark(_correct: Any) -> Callable[[Any, Any], int]:
    def initial_truncation_offset(_self: Any, log: Any) -> int:
        return int(log.high_watermark)

    return initial_truncation_offset


MUTANT = Mutant(
    name="truncate-to-hw",
    property="no-truncation-below-hw",
    summary="a new follower truncates to its high watermark instead of by leader epoch (KAFKA-1211)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread.initial_truncation_offset",
            _to_high_watermark,
            is_comparable=True,
        ),
    ),
)
