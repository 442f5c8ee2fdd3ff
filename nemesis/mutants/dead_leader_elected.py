"""An election takes the first replica of the ISR without looking whether its broker is alive.

The first of the assignment is nearly always the leader that has just died: it is elected again.

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _everybody_is_alive(correct: Callable[..., Any]) -> Callable[..., Any]:
    def offline_partition_leader_election(
        assignment: Any, current: Any, _is_online: Any, **options: Any
    ) -> Any:
        return correct(assignment, current, lambda _replica: True, **options)

    return offline_partition_leader_election


MUTANT = Mutant(
    name="dead-leader-elected",
    property="leader-from-isr",
    summary="an election does not look whether the replica that it elects is alive",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election",
            "offline_partition_leader_election",
            _everybody_is_alive,
            is_comparable=True,
        ),
    ),
)
