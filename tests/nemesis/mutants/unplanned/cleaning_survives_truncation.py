"""A cleaning goes on although its log was truncated meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(_correct: Any) -> Callable[[Any, Any], None]:
    return lambda self, log: None


MUTANT = Mutant(
    name="cleaning-survives-truncation",
    property="final-logs",
    summary="a cleaning goes on although its log was truncated meanwhile",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_cleaner_manager",
            "LogCleanerManager.abort_cleaning",
            wrong,
        ),
    ),
    scenario="log-compaction",
)
