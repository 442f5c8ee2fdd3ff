"""A leader counts a fetch that it answers with a diverging epoch.

The fetch offset is where the follower's log ends, but that log is not the leader's: the follower is about to truncate
it. Counted, it raises the high watermark over records that the follower does not have, and lets the follower into the
ISR. Kafka's leaders did so from 2.7 on, until KAFKA-13141.

Must be caught by: isr-join-caught-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _whatever_is_answered(correct: Callable[..., Any]) -> Callable[..., Any]:
    def fetch_records(
        partition: Any, params: Any, request: Any, *, update_fetch_state: bool, **options: Any
    ) -> Any:
        result = correct(
            partition, params, request, update_fetch_state=update_fetch_state, **options
        )
        if result.diverging_epoch is not None and update_fetch_state and params.replica_id >= 0:
            partition.update_follower_fetch_state(
                partition.remote_replicas[params.replica_id],
                fetch_offset=request.fetch_offset,
                log_start_offset=request.log_start_offset,
                broker_epoch=params.replica_epoch,
            )
        return result

    return fetch_records


MUTANT = Mutant(
    name="diverging-fetch-counted",
    property="isr-join-caught-up",
    summary="a leader counts the offset of a fetch that it answers with a diverging epoch (KAFKA-13141)",
    replacements=(
        Replacement(
            "nemesis.reference.server.record_fetches",
            "fetch_records",
            _whatever_is_answered,
        ),
    ),
    scenario="rich-clients",
)
