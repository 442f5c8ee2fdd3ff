"""A reassignment that is cancelled goes back to the replicas of the moment, those that it was adding among them.

Nobody asked for so many replicas, and whoever cancels to take load off a broker has it for good. In Kafka a cancel
makes the original replicas the target (KIP-455).

Must be caught by: reassignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _to_all_of_them(correct: Any) -> Callable[[Any, Any], Any]:
    def towards(current: Any, target: Any) -> Any:
        if target is None and current.is_being_reassigned:
            return current.reassign_to(current.replicas)
        return correct(current, target)

    return towards


MUTANT = Mutant(
    name="cancel-keeps-added-replicas",
    property="reassignment",
    summary="a cancelled reassignment keeps the replicas that it was adding (KIP-455)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.partition_reassignments",
            "_towards",
            _to_all_of_them,
            is_comparable=True,
        ),
    ),
    scenario="reassignment",
)
