"""A transaction coordinator answers a new producer its epoch, and stays in the former one itself.

So it refuses everything that the new producer asks, as if another one had fenced it.

Must be caught by: producer-epoch-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _forgetting(correct: Any) -> Callable[..., None]:
    def complete_transition(metadata: Any, transition: Any) -> None:
        former = metadata.producer_epoch
        correct(metadata, transition)
        metadata.producer_epoch = former

    return complete_transition


MUTANT = Mutant(
    name="new-epoch-forgotten",
    property="producer-epoch-kept",
    summary="a transaction coordinator answers a new producer its epoch, and stays in the former one itself",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.transaction.transaction_metadata",
            "TransactionMetadata.complete_transition",
            _forgetting,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
