"""A transaction coordinator never aborts the transactions that have been open for longer than their time-out.

They end with the next producer of their transactional id, so none needs to be open when a run ends.

Must be caught by: hanging-transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _keeping(correct: Any) -> Callable[..., None]:  # noqa: ARG001
    def abort_timed_out_transactions(coordinator: Any) -> None:
        pass

    return abort_timed_out_transactions


MUTANT = Mutant(
    name="overdue-transactions-kept",
    property="hanging-transaction",
    summary="a transaction coordinator aborts no transaction that has been open for longer than its time-out (KIP-98)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.transaction.transaction_coordinator",
            "TransactionCoordinator.abort_timed_out_transactions",
            _keeping,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
