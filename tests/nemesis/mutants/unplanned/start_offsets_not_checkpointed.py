"""Log start offsets are never checkpointed, so deleted records come back after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any], None]:
    del correct
    return lambda self: None


MUTANT = Mutant(
    name="start-offsets-not-checkpointed",
    property="log-start-bounded",
    summary="log start offsets are never checkpointed, so deleted records come back after a restart",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_directory", "LogDirectory.write_log_start_offsets", wrong
        ),
    ),
    scenario="log-maintenance",
)
"""The bug."""
