"""Replicas of a dead broker become ineligible for deletion without going offline first.

That is where a failover puts those that it finds dead, in memory. But a replica that was online has to leave the ISR on
its way, and here it does not. Kafka's topic deletion tries the same transition; its state machine refuses it, and
this one does not.

Must be caught by: legal-transition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.controller_context import ReplicaState

Change = Callable[[Any, Any, ReplicaState], Awaitable[None]]


def _unchecked(_correct: Any) -> Callable[[Any, Any, ReplicaState], bool]:
    def is_legal(_self: Any, _replica: Any, _target: ReplicaState) -> bool:
        return True

    return is_legal


def _straight_to_ineligible(correct: Change) -> Change:
    async def handle_state_changes(self: Any, replicas: Any, target: ReplicaState) -> None:
        listed = list(replicas)
        is_dead = all(replica.replica not in self._context.live_brokers for replica in listed)
        if target is ReplicaState.OFFLINE and is_dead:
            target = ReplicaState.DELETION_INELIGIBLE
        await correct(self, listed, target)

    return handle_state_changes


MUTANT = Mutant(
    name="replicas-die-online",
    property="legal-transition",
    summary="replicas of a dead broker skip a state, and the state machine lets them",
    replacements=(
        Replacement(
            "nemesis.reference.controller.replica_state_machine",
            "ReplicaStateMachine._is_legal",
            _unchecked,
        ),
        Replacement(
            "nemesis.reference.controller.replica_state_machine",
            "ReplicaStateMachine.handle_state_changes",
            _straight_to_ineligible,
        ),
    ),
)
