"""A replica joins the ISR as soon as it has reached the leader's high watermark (KAFKA-7128).

The high watermark of a new leader may lag behind what its predecessors committed; the start of its epoch does not.
Kafka 1.0 to 2.0.0; fixed in 2.0.1 and 2.1.0.

Must be caught by: isr-join-caught-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _high_watermark_alone(_correct: Any) -> Callable[[Any, Any], bool]:
    def is_follower_in_sync(partition: Any, replica: Any) -> bool:
        return bool(replica.log_end_offset >= partition.leader_log.high_watermark)

    return is_follower_in_sync


MUTANT = Mutant(
    name="joins-below-epoch-start",
    property="isr-join-caught-up",
    summary="a replica joins the ISR at a high watermark that lags behind the start of the leader epoch (KAFKA-7128)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.is_follower_in_sync",
            _high_watermark_alone,
            is_comparable=True,
        ),
    ),
)
