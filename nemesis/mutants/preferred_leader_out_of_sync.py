"""A preferred election lets the first replica lead though it is not in the ISR.

It is alive, and it is the one that shall lead; what it has not fetched yet is lost.

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.election import ElectionResult, new_leader_and_isr


def _if_alive(_correct: Any) -> Callable[[Any, Any, Callable[[int], bool]], ElectionResult]:
    def preferred_replica_leader_election(
        assignment: Any, current: Any, is_online: Callable[[int], bool]
    ) -> ElectionResult:
        preferred = assignment[0]
        if not is_online(preferred):
            return ElectionResult(None, assignment)
        isr = tuple(dict.fromkeys((*current.isr, preferred)))
        return ElectionResult(new_leader_and_isr(current, preferred, isr), assignment)

    return preferred_replica_leader_election


MUTANT = Mutant(
    name="preferred-leader-out-of-sync",
    property="leader-from-isr",
    summary="a preferred election does not ask whether the replica is in sync",
    scenario="reassignment",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election",
            "preferred_replica_leader_election",
            _if_alive,
            is_comparable=True,
        ),
    ),
)
