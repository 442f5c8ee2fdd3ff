"""A coordinator sends commit markers to the first partition of a transaction, and abort markers to the others.

Readers of committed records are given a part of the transaction.

Must be caught by: torn-transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _disagreeing(correct: Callable[..., None]) -> Callable[..., None]:
    def send(channels: Any, marker: Any, partitions: Iterable[Any], on_answer: Any) -> None:
        first, *others = sorted(partitions)
        correct(channels, marker, [first], on_answer)
        if others:
            correct(channels, replace(marker, is_commit=False), others, on_answer)

    return send


MUTANT = Mutant(
    name="markers-disagree",
    property="torn-transaction",
    summary="a committed transaction gets abort markers in all partitions but the first",
    replacements=(
        Replacement(
            "nemesis.reference.server.transaction_marker_channel_manager",
            "TransactionMarkerChannelManager.send",
            _disagreeing,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
