"""A group coordinator commits the offsets of a transaction, also when its marker is an abort marker.

A consumer goes on behind input whose output was aborted: it is derived by no transaction.

Must be caught by: exactly-once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _committed(correct: Callable[..., None]) -> Callable[..., None]:
    def complete_transactional(
        offsets: Any, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        del is_commit
        correct(offsets, producer_id, marker_offset, is_commit=True)

    return complete_transactional


MUTANT = Mutant(
    name="aborted-offsets-committed",
    property="exactly-once",
    summary="a group coordinator commits the offsets of aborted transactions, too",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_offsets",
            "GroupOffsets.complete_transactional",
            _committed,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
