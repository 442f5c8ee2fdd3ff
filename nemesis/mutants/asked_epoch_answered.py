"""A leader names the requested leader epoch in its answer to OffsetForLeaderEpoch, whether or not its log has it.

The answer must be the largest leader epoch of the log that is at most the requested one. A follower that asks for an
epoch which the leader never had takes the answer for its own epoch: it truncates to where the leader's next epoch
begins, keeps what it has of epochs in between, and the logs diverge. Brokers before KIP-279 answered the offset alone
(KAFKA-6361).

Must be caught by: epoch-ends-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import UNDEFINED_OFFSET


def _as_requested(correct: Callable[..., Any]) -> Callable[..., Any]:
    def last_offset_for_leader_epoch(
        partition: Any, current_leader_epoch: int, leader_epoch: int
    ) -> Any:
        end = correct(partition, current_leader_epoch, leader_epoch)
        if end.end_offset == UNDEFINED_OFFSET:
            return end
        return end._replace(leader_epoch=leader_epoch)

    return last_offset_for_leader_epoch


MUTANT = Mutant(
    name="asked-epoch-answered",
    property="epoch-ends-answered",
    summary="OffsetForLeaderEpoch answers the requested epoch, not the largest up to it that the log has (KAFKA-6361)",
    replacements=(
        Replacement(
            "nemesis.reference.server.offset_lookups",
            "last_offset_for_leader_epoch",
            _as_requested,
            is_comparable=True,
        ),
    ),
    scenario="rich-clients",
)
