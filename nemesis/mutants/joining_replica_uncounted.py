"""The high watermark does not wait for a replica whose admission to the ISR is under way.

Once the controller has taken it in it may be elected, and the leader learns of that last. So the leader must count it
from the moment when it asks (KIP-497's maximal ISR; a model of the protocol that leaves it out breaks in a few
steps).

Must be caught by: hw-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _committed_only(_correct: Any) -> Callable[[Any], int]:
    def leader_high_watermark_candidate(self: Any) -> int:
        ends = [
            self.remote_replicas[b].log_end_offset
            for b in self.state.isr
            if b in self.remote_replicas
        ]
        return int(min([self.leader_log.log_end_offset, *ends]))

    return leader_high_watermark_candidate


MUTANT = Mutant(
    name="joining-replica-uncounted",
    property="hw-bounded",
    summary="the high watermark ignores a replica that is about to join the ISR (KIP-497)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.leader_high_watermark_candidate",
            _committed_only,
            is_comparable=True,
        ),
    ),
)
