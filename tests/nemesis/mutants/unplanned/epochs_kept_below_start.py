"""Leader epochs below the log's start are kept when records are deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, int], None]:
    del correct
    return lambda self, start_offset: None


MUTANT = Mutant(
    name="epochs-kept-below-start",
    property="epoch-ends-answered",
    summary="leader epochs below the log's start are kept when records are deleted",
    replacements=(
        Replacement(
            "nemesis.reference.log.leader_epoch_file_cache",
            "LeaderEpochFileCache.truncate_from_start",
            wrong,
        ),
    ),
    scenario="log-maintenance",
)
"""The bug."""
