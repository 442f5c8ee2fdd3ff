"""A transaction coordinator stores the partitions that a producer adds, and does not know them afterwards.

So leaders that ask it refuse the producer's records (KIP-890), and no transaction is committed.

Must be caught by: transactions-possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _forgetting(correct: Any) -> Callable[..., None]:
    def complete_transition(metadata: Any, transition: Any) -> None:
        former = metadata.partitions
        correct(metadata, transition)
        metadata.partitions = former

    return complete_transition


MUTANT = Mutant(
    name="added-partitions-forgotten",
    property="transactions-possible",
    summary="a transaction coordinator forgets the partitions that producers add to their transactions",
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
