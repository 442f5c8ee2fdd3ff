"""A controlled shutdown moves leaders to brokers that are shutting down.

To the leaving one itself, mostly: it is alive and in sync, and often the first of the assignment. Kafka had it under
KRaft (KAFKA-13944); in ZooKeeper mode the election skips all that are shutting down.

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _whoever_leaves(correct: Callable[..., Any]) -> Callable[..., Any]:
    def controlled_shutdown_leader_election(
        assignment: Any, current: Any, is_online: Any, _shutting_down: Any
    ) -> Any:
        return correct(assignment, current, is_online, ())

    return controlled_shutdown_leader_election


MUTANT = Mutant(
    name="leaving-leader-elected",
    property="leader-from-isr",
    summary="a controlled shutdown elects brokers that are shutting down (KAFKA-13944)",
    scenario="topics",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election",
            "controlled_shutdown_leader_election",
            _whoever_leaves,
            is_comparable=True,
        ),
    ),
)
