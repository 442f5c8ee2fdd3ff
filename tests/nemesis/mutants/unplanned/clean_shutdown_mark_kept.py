"""The mark of a clean stop is left when the broker starts, so after a crash no log is verified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any], bool]:
    del correct

    def take_clean_shutdown_mark(self: Any) -> bool:
        return bool(self._files.exists(self._file(".kafka_cleanshutdown")))

    return take_clean_shutdown_mark


MUTANT = Mutant(
    name="clean-shutdown-mark-kept",
    property="log-files-agree",
    summary="the mark of a clean stop is left when the broker starts, so after a crash no log is verified",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_directory", "LogDirectory._take_clean_shutdown_mark", wrong
        ),
    ),
    scenario="machine-faults",
)
"""The bug."""
