"""A broker accepts control requests of a controller that was deposed.

Kafka's brokers remember the highest controller epoch that they heard and refuse less (STALE_CONTROLLER_EPOCH);
failovers without that check let a late LeaderAndIsr of the old controller overrule the new one (KAFKA-1188,
0.8.0 to 0.8.2). It shows when a request of the old controller is held on its link, a new controller speaks, and
the old bytes arrive.

Must be caught by: stale-controller-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _never_stale(_correct: Any) -> Callable[[Any, int], bool]:
    def is_stale_controller_epoch(_self: Any, _controller_epoch: int) -> bool:
        return False

    return is_stale_controller_epoch


MUTANT = Mutant(
    name="no-controller-epoch-check",
    property="stale-controller-fenced",
    summary="brokers accept control requests of a smaller controller epoch (KAFKA-1188)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_manager",
            "ReplicaManager.is_stale_controller_epoch",
            _never_stale,
            is_comparable=True,
        ),
    ),
)
