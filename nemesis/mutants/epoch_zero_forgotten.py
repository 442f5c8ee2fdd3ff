"""Leader epoch 0 is not recovered from a log after a crash.

The recovery took only epochs above 0 for epochs (KAFKA-10432, up to 2.6.0, mended in 2.6.1). A replica whose log was
written in epoch 0 knows of no epoch, so it is cut to its high watermark when it follows, as before KIP-101, though it
is in the ISR.

Must be caught by: no-truncation-below-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _above_zero(correct: Any) -> Callable[[Any, int, Any], None]:
    def rebuild(self: Any, from_offset: int, assignments: Any) -> None:
        correct(self, from_offset, [entry for entry in assignments if entry.epoch > 0])

    return rebuild


MUTANT = Mutant(
    name="epoch-zero-forgotten",
    property="no-truncation-below-hw",
    summary="epoch 0 is not recovered, so its replicas truncate to the high watermark (KAFKA-10432)",
    replacements=(
        Replacement(
            "nemesis.reference.log.leader_epoch_file_cache",
            "LeaderEpochFileCache.rebuild",
            _above_zero,
        ),
    ),
)
