"""A replica answers clients that state an older leader epoch than its own, as brokers before KIP-320 did.

The client does not learn that there was an election. Its position may be in records that the new leader does not have.

Must be caught by: leader-epochs-fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import UNDEFINED_EPOCH


def _without_fencing(correct: Callable[..., Any]) -> Callable[..., Any]:
    def _local_log(partition: Any, current_leader_epoch: int, *, leader_only: bool) -> Any:
        is_older = current_leader_epoch < partition.leader_epoch
        believed = UNDEFINED_EPOCH if is_older else current_leader_epoch
        return correct(partition, believed, leader_only=leader_only)

    return _local_log


MUTANT = Mutant(
    name="stale-epochs-answered",
    property="leader-epochs-fenced",
    summary="a replica answers clients that state an older leader epoch than its own (before KIP-320)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition_reads",
            "_local_log",
            _without_fencing,
            is_comparable=True,
        ),
    ),
    scenario="rich-clients",
)
