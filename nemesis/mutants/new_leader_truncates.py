"""A new leader cuts its log at its own high watermark before it serves anybody.

What lies above may be acknowledged: a follower's high watermark lags behind its leader's. Before KIP-101 followers did
so when they began to follow; a leader never may.

Must be caught by: leader-keeps-log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _cut_first(correct: Any) -> Callable[..., None]:
    def make_leader(partition: Any, state: Any) -> None:
        correct(partition, state)
        log = partition.leader_log
        if log.high_watermark < log.log_end_offset:
            partition.leader_id = None
            partition.truncate_to(log.high_watermark)
            partition.leader_id = state.leader_and_isr.leader

    return make_leader


MUTANT = Mutant(
    name="new-leader-truncates",
    property="leader-keeps-log",
    summary="a new leader truncates its log to its high watermark",
    replacements=(
        Replacement("nemesis.reference.cluster.partition", "Partition.make_leader", _cut_first),
    ),
)
