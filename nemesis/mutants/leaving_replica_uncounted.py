"""The high watermark does not wait for a replica from the moment when its removal from the ISR is asked for.

Until the controller has agreed it is in the ISR and may be elected, without what was committed meanwhile (KIP-497's
maximal ISR; AlterIsr brought the case into being with 2.7).

Must be caught by: hw-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _proposed_only(correct: Any) -> Callable[[Any], int]:
    def leader_high_watermark_candidate(self: Any) -> int:
        proposed = getattr(self.state, "proposed_isr", None)
        if proposed is None:
            return int(correct(self))
        ends = [
            self.remote_replicas[b].log_end_offset for b in proposed if b in self.remote_replicas
        ]
        return int(min([self.leader_log.log_end_offset, *ends]))

    return leader_high_watermark_candidate


MUTANT = Mutant(
    name="leaving-replica-uncounted",
    property="hw-bounded",
    summary="the high watermark passes a replica whose removal from the ISR is only asked for (KIP-497)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.leader_high_watermark_candidate",
            _proposed_only,
            is_comparable=True,
        ),
    ),
)
