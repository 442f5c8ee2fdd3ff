"""A broker refuses a control request that carries a newer broker epoch than the one that it knows of itself.

When a broker registers again, ZooKeeper shows the registration to the controller at once, and the broker learns its own
new epoch from the answer, which may come later. Up to Kafka 2.5 a broker raised an IllegalStateException for what the
controller sent in between (KAFKA-9839). Nothing is sent again, so the broker keeps out-of-date metadata and roles.

Must be caught by: broker-epoch-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _any_other_is_stale(_correct: Any) -> Callable[[Any, int], bool]:
    own = methodcaller("_broker_epoch")

    def is_stale_broker_epoch(replicas: Any, broker_epoch: int) -> bool:
        return broker_epoch >= 0 and broker_epoch != own(replicas)

    return is_stale_broker_epoch


MUTANT = Mutant(
    name="newer-broker-epoch-refused",
    property="broker-epoch-fenced",
    summary="a broker refuses what a controller sends that has seen its registration first (KAFKA-9839)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_manager",
            "ReplicaManager.is_stale_broker_epoch",
            _any_other_is_stale,
            is_comparable=True,
        ),
    ),
    scenario="late-requests",
)
