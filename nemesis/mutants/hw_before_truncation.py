"""A follower takes in its leader's high watermark before it cuts what the leader does not have.

The answer to a fetch names where the logs part, and the leader's high watermark. A follower that follows the second
first calls records committed that it is about to truncate. A consumer that reads from this follower (KIP-392) is given
them if it is served in between; a follower that fails in between starts again with that high watermark. Kafka brokers
did so until KAFKA-14704.

Must be caught by: no-truncation-below-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _high_watermark_first(correct: Callable[..., None]) -> Callable[..., None]:
    def take_in(fetcher: Any, state: Any, data: Any) -> None:
        if data.diverging_epoch.end_offset >= 0:
            state.partition.append_as_follower(b"", data.high_watermark, data.log_start_offset)
        correct(fetcher, state, data)

    return take_in


MUTANT = Mutant(
    name="hw-before-truncation",
    property="no-truncation-below-hw",
    summary="a follower updates its high watermark before it truncates what its leader does not have (KAFKA-14704)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread._take_in",
            _high_watermark_first,
        ),
    ),
)
