"""A broker that leads a partition of the offsets topic no longer goes on to coordinate its groups (KAFKA-4362)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(_correct: Any) -> Callable[[Any, Any, int | None], None]:
    return lambda self, topic_partition, leader_epoch: None


MUTANT = Mutant(
    name="coordinator-keeps-groups",
    property="fenced-member",
    summary="a broker that no longer leads a partition of the offsets topic coordinates on (KAFKA-4362)",
    replacements=(
        Replacement(
            "nemesis.reference.server.coordinator_roles",
            "CoordinatorRoles.on_replica_gone",
            wrong,
        ),
    ),
    scenario="groups",
)
