"""A log that is truncated keeps what it remembers of producers whose batches are cut.

When a follower cuts its log to its leader's, the producers that it remembers have to go back with the log: to the
newest snapshot before the cut and the batches behind it (ProducerStateManager.truncateAndReload, KIP-98; KAFKA-5435 is
about the snapshots that this needs). A replica that keeps them takes a batch that was cut for a duplicate when it leads
and the producer sends the batch again: it acknowledges the batch and does not append it.

Must be caught by: producers-within-log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _only_when_opened(correct: Any) -> Callable[..., None]:
    def rebuild(producers: Any, segments: Any, log_end_offset: int, walked: Any = None) -> None:
        if not producers.active_producers:
            correct(producers, segments, log_end_offset, walked)

    return rebuild


MUTANT = Mutant(
    name="producers-survive-truncation",
    property="producers-within-log",
    summary="a follower that truncates its log still remembers the producers of what it has cut (KIP-98)",
    replacements=(
        Replacement(
            "nemesis.reference.log.producer_state_manager",
            "ProducerStateManager.rebuild",
            _only_when_opened,
        ),
    ),
    scenario="idempotent-producers",
)
