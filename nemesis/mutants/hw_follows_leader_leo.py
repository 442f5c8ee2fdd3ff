"""The high watermark is the leader's own log end offset.

It must be the smallest log end offset of the ISR: below it, a record is on every replica that may be elected.
Here consumers are given records, and producers their acknowledgements, that only the leader has.

Must be caught by: hw-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _own_end(_correct: Any) -> Callable[[Any], int]:
    def leader_high_watermark_candidate(self: Any) -> int:
        return int(self.leader_log.log_end_offset)

    return leader_high_watermark_candidate


MUTANT = Mutant(
    name="hw-follows-leader-leo",
    property="hw-bounded",
    summary="the high watermark follows the leader's own log end offset instead of the ISR's smallest",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.leader_high_watermark_candidate",
            _own_end,
            is_comparable=True,
        ),
    ),
)
