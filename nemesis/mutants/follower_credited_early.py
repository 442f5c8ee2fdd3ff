"""A leader believes that a follower has what it is just being sent.

A fetch at offset n says that all below n is there; the records of its answer are there when the next fetch says so. A
leader that counts them at once raises the high watermark over records that only it has, and acknowledges them.

Must be caught by: hw-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _as_if_sent(correct: Any) -> Callable[..., None]:
    def update_follower_fetch_state(self: Any, replica: Any, **fetched: Any) -> None:
        fetched["fetch_offset"] = self.leader_log.log_end_offset
        correct(self, replica, **fetched)

    return update_follower_fetch_state


MUTANT = Mutant(
    name="follower-credited-early",
    property="hw-bounded",
    summary="a leader counts as replicated what it has only just sent to the follower",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.update_follower_fetch_state",
            _as_if_sent,
        ),
    ),
)
