"""A truncation leaves the recovery point behind the log's end, so what follows counts as synced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, int], None]:
    def truncate_segments(self: Any, offset: int) -> None:
        point = self.recovery_point
        correct(self, offset)
        self.recovery_point = point

    return truncate_segments


MUTANT = Mutant(
    name="recovery-point-kept",
    property="log-files-agree",
    summary="a truncation leaves the recovery point behind the log's end, so what follows counts as synced",
    replacements=(
        Replacement("nemesis.reference.log.local_log", "LocalLog._truncate_segments", wrong),
    ),
    scenario="machine-faults",
)
"""The bug."""
