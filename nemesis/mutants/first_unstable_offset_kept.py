"""A leader forgets a transaction whose marker is replicated, and does not look for the first unstable offset again.

The last stable offset stays below the last transaction until the next one begins.

Must be caught by: last-stable-offset-at-rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _keeping(correct: Any) -> Callable[..., None]:
    def on_high_watermark(transactions: Any, high_watermark: int) -> None:
        first = transactions.first_unstable_offset
        correct(transactions, high_watermark)
        transactions.first_unstable_offset = first

    return on_high_watermark


MUTANT = Mutant(
    name="first-unstable-offset-kept",
    property="last-stable-offset-at-rest",
    summary="a leader does not look for the first unstable offset again when a marker is replicated",
    replacements=(
        Replacement(
            "nemesis.reference.log.ongoing_transactions",
            "OngoingTransactions.on_high_watermark",
            _keeping,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
