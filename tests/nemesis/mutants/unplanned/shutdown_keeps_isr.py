"""A broker that shuts down stays in the ISR of what it led (KAFKA-1305)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., Any]:
    def controlled_shutdown_leader_election(
        assignment: Any, current: Any, is_online: Any, shutting_down: Any
    ) -> Any:
        result = correct(assignment, current, is_online, shutting_down)
        if result.leader_and_isr is None:
            return result
        return replace(result, leader_and_isr=replace(result.leader_and_isr, isr=current.isr))

    return controlled_shutdown_leader_election


MUTANT = Mutant(
    name="shutdown-keeps-isr",
    property="dead-brokers-replaced",
    summary="a broker that shuts down stays in the ISR of what it led (KAFKA-1305)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.election", "controlled_shutdown_leader_election", wrong
        ),
    ),
    scenario="partition-controller",
)
"""The bug."""
