"""A StopReplica of an earlier leader epoch stops the replica (KIP-570)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import EPOCH_DURING_DELETE


def wrong(correct: Any) -> Callable[[Any, Any, Any, Any], bool]:
    def is_fenced(self: Any, state: Any, partition: Any, topic_id: Any) -> bool:
        return state.leader_epoch == EPOCH_DURING_DELETE and bool(
            correct(self, state, partition, topic_id)
        )

    return is_fenced


MUTANT = Mutant(
    name="stop-replica-unfenced",
    property="convergence",
    summary="a StopReplica of an earlier leader epoch stops the replica (KIP-570)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_roles",
            "ReplicaRoles._is_fenced",
            wrong,
            is_comparable=True,
        ),
    ),
    scenario="late-requests",
)
