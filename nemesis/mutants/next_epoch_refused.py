"""A transaction coordinator refuses each producer that asks for its next epoch, as if another one had fenced it.

Such a producer has given up a batch, and needs new sequence numbers (KIP-360). A new producer is still answered.

Must be caught by: producer-epoch-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _refusing(correct: Any) -> Callable[..., bool]:  # noqa: ARG001
    def may_initialize(metadata: Any, expected: Any) -> bool:  # noqa: ARG001
        return False

    return may_initialize


MUTANT = Mutant(
    name="next-epoch-refused",
    property="producer-epoch-kept",
    summary="a transaction coordinator refuses each producer that asks for its next epoch (KIP-360)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.transaction.transaction_metadata",
            "TransactionMetadata.may_initialize",
            _refusing,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
