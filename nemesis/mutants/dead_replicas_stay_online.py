"""The controller elects other leaders when a broker dies, and leaves the replicas of that broker as they are.

They stay Online, so they stay in ISRs until their leaders miss them, and what waits for their answer waits
(KAFKA-3143 is the same at a failover).

Must be caught by: dead-brokers-replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.controller_context import ReplicaState


def _never_offline(correct: Any) -> Callable[..., Any]:
    async def handle_state_changes(machine: Any, replicas: Any, target: ReplicaState) -> None:
        await correct(machine, () if target is ReplicaState.OFFLINE else replicas, target)

    return handle_state_changes


MUTANT = Mutant(
    name="dead-replicas-stay-online",
    property="dead-brokers-replaced",
    summary="the replicas of a broker that dies stay online",
    replacements=(
        Replacement(
            "nemesis.reference.controller.replica_state_machine",
            "ReplicaStateMachine.handle_state_changes",
            _never_offline,
        ),
    ),
)
