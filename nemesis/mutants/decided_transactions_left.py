"""A coordinator that takes over does not go on with transactions that are decided.

The decision is in the log, and the markers were the work of the former coordinator. The transaction stays open in its
partitions, and its producer waits: CONCURRENT_TRANSACTIONS is the answer to all that it asks.

Must be caught by: hanging-transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _left(_correct: Any) -> Callable[..., None]:
    def _on_loaded(_coordinator: Any, _owned: Any) -> None:
        return None

    return _on_loaded


MUTANT = Mutant(
    name="decided-transactions-left",
    property="hanging-transaction",
    summary="a new transaction coordinator sends no markers for transactions that its predecessor has decided",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.transaction.transaction_coordinator",
            "TransactionCoordinator._on_loaded",
            _left,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
