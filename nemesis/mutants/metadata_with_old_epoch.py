"""UpdateMetadata names the leader of now with the leader epoch before.

Clients and followers that use the epoch are fenced by that leader for ever (KAFKA-9212: during a reassignment).

Must be caught by: metadata-never-back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _epoch_before(correct: Any) -> Callable[..., Any]:
    def with_old_epoch(*, leader_epoch: int, **state: Any) -> Any:
        return correct(leader_epoch=max(0, leader_epoch - 1), **state)

    return with_old_epoch


MUTANT = Mutant(
    name="metadata-with-old-epoch",
    property="metadata-never-back",
    summary="UpdateMetadata names the new leader with the leader epoch before (KAFKA-9212)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.controller_broker_request_batch",
            "UpdateMetadataPartitionState",
            _epoch_before,
            is_comparable=True,
        ),
    ),
)
