"""High watermarks are checkpointed only once while a broker runs.

The job that checkpoints them ends after its first time. A broker that is killed starts with the high watermarks of its
first seconds, and truncates to them where it knows no leader epoch (compare KAFKA-1647, where followers were left out).

Must be caught by: checkpoints-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _once(correct: Callable[..., None]) -> Callable[..., None]:
    def checkpoint_high_watermarks(self: Any, *arguments: Any, **options: Any) -> None:
        if not getattr(self, "has_checkpointed", False):
            self.has_checkpointed = True
            correct(self, *arguments, **options)

    return checkpoint_high_watermarks


MUTANT = Mutant(
    name="marks-checkpointed-once",
    property="checkpoints-kept",
    summary="a broker checkpoints its high watermarks only once",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_manager",
            "LogManager.checkpoint_high_watermarks",
            _once,
        ),
    ),
)
