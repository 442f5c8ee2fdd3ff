"""A reassignment is complete when the ISR is as large as the target, no matter which brokers are in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., Any]:
    async def is_complete(self: Any, topic_partition: Any, assignment: Any) -> bool:
        if await correct(self, topic_partition, assignment):
            return True
        states = await self._zk_client.states.get_topic_partition_states([topic_partition])
        state = states.get(topic_partition)
        target = assignment.target_replicas
        return (
            state is not None
            and len(state.leader_and_isr.isr) >= len(target)
            and any(self._context.is_replica_online(r, topic_partition) for r in target)
        )

    return is_complete


MUTANT = Mutant(
    name="reassignment-complete-by-count",
    property="reassignment",
    summary="a reassignment is complete when the ISR is as large as the target, no matter which brokers are in it",
    replacements=(
        Replacement(
            "nemesis.reference.controller.reassignment_phases",
            "ReassignmentPhases.is_complete",
            wrong,
        ),
    ),
    scenario="reassignment",
)
"""The bug."""
