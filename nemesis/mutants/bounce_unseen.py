"""A broker that dies and comes back between two looks at ``/brokers/ids`` was never away.

Before KIP-380 (KAFKA-7235, up to 2.1, mended in 2.2) the controller compared the ids of the brokers, not their
epochs. The new life is told nothing, least of all what it is to lead or follow.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Changes = Callable[[Mapping[int, int], Mapping[int, int]], Any]


def _by_id_alone(correct: Changes) -> Changes:
    def broker_changes(live: Mapping[int, int], current: Mapping[int, int]) -> Any:
        return correct(live, {broker: live.get(broker, epoch) for broker, epoch in current.items()})

    return broker_changes


MUTANT = Mutant(
    name="bounce-unseen",
    property="convergence",
    summary="the controller compares brokers by id alone and does not see that one has bounced (KAFKA-7235)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.cluster_changes",
            "broker_changes",
            _by_id_alone,
            is_comparable=True,
        ),
    ),
)
