"""A transaction coordinator does not compare the epoch of a producer with the one that its transactional id has now.

A producer that was away goes on beside the one that has taken over: its records are committed with those of the other.

Must be caught by: fenced-producer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _unfenced(correct: Callable[..., Any]) -> Callable[..., Any]:
    def _owned(coordinator: Any, producer: Any) -> Any:
        owned = coordinator._transactions.get(producer.transactional_id)  # noqa: SLF001
        metadata = getattr(owned, "metadata", None)
        if metadata is None:
            return correct(coordinator, producer)
        return correct(coordinator, replace(producer, epoch=metadata.producer_epoch))

    return _owned


MUTANT = Mutant(
    name="producer-epoch-unchecked",
    property="fenced-producer",
    summary="a transaction coordinator takes requests of producers of earlier epochs (KIP-98)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.transaction.transaction_coordinator",
            "TransactionCoordinator._owned",
            _unfenced,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
