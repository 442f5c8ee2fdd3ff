"""A leader states the broker epoch of the replica that joins, and of no member that is in the ISR already.

The controller cannot compare what is not stated. A member that has restarted on an empty disk stays in the ISR, if its
leader proposes another change before the controller takes it out.

Must be caught by: isr-epochs-stated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH


def _of_new_members(correct: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    def epoch_of(partition: Any, broker: int) -> int:
        is_member = broker in partition.state.isr and broker in partition.remote_replicas
        return UNKNOWN_BROKER_EPOCH if is_member else correct(partition, broker)

    return epoch_of


MUTANT = Mutant(
    name="member-epochs-omitted",
    property="isr-epochs-stated",
    summary="a leader states no broker epochs of members of the ISR, only that of the replica that joins",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition._epoch_of",
            _of_new_members,
            is_comparable=True,
        ),
    ),
)
