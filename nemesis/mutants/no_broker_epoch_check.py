"""A broker accepts control requests that were meant for its previous life.

Before KIP-380 (KAFKA-7235, up to 2.1, mended in 2.2) control requests did not tell which registration of the broker
they were for. What a controller had queued or repeated for a broker that was killed reached the one that started in
its place: an old StopReplica took replicas offline that the controller believed online.

Must be caught by: broker-epoch-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _never_stale(_correct: Any) -> Callable[[Any, int], bool]:
    def is_stale_broker_epoch(_self: Any, _broker_epoch: int) -> bool:
        return False

    return is_stale_broker_epoch


MUTANT = Mutant(
    name="no-broker-epoch-check",
    property="broker-epoch-fenced",
    summary="brokers accept control requests that were meant for their previous life (KAFKA-7235, KIP-380)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_manager",
            "ReplicaManager.is_stale_broker_epoch",
            _never_stale,
            is_comparable=True,
        ),
    ),
)
