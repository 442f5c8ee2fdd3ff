"""Each attempt to fence a producer raises its epoch, though the attempt before could not be written (KAFKA-9666).

While the transaction log has too few replicas in sync, producers and the coordinator try again and again. When the
epochs are used up, the next attempt is an exception, and the transactional id is lost. Kafka up to 2.4; fixed in 2.5.0.

A run has no time for 32,767 attempts: here the epochs end at ``LAST_EPOCH``.

Must be caught by: no-unforeseen-exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.coordinator.transaction.transaction_metadata import IllegalTransitionError

LAST_EPOCH: Final = 24


def _raised(correct: Callable[..., Any]) -> Callable[..., Any]:
    def prepare_fence_producer_epoch(metadata: Any) -> Any:
        if metadata.producer_epoch >= LAST_EPOCH:
            raise IllegalTransitionError(f"{metadata}: the epochs are used up")
        metadata.has_failed_epoch_fence = False
        return correct(metadata)

    return prepare_fence_producer_epoch


def _early(_correct: Any) -> Callable[[int], bool]:
    def is_exhausted(epoch: int) -> bool:
        return epoch >= LAST_EPOCH - 1

    return is_exhausted


_MODULE: Final = "nemesis.reference.coordinator.transaction.transaction_metadata"
MUTANT = Mutant(
    name="epochs-used-up-by-fencing",
    property="no-unforeseen-exception",
    summary="each failed attempt to fence a producer raises its epoch, until the epochs are used up (KAFKA-9666)",
    replacements=(
        Replacement(_MODULE, "TransactionMetadata.prepare_fence_producer_epoch", _raised),
        Replacement(_MODULE, "is_exhausted", _early, is_comparable=True),
    ),
    scenario="transactions",
)
"""The bug."""
