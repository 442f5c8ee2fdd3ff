"""A broker that deletes old segments stops at the first log that has none.

Its logs are looked at one after the other, in one order. Behind one that has nothing to delete they all grow, until
every log before them happens to have something at the same time.

Must be caught by: retention-runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.log.log_retention import deletable_segments


def _up_to_the_first_idle_log(_correct: Any) -> Callable[..., None]:
    def cleanup_logs(self: Any) -> None:
        for log in self._every_log():
            if not deletable_segments(log, now_ms=self._wall_clock()):
                return
            self._attempt(log.delete_old_segments)

    return cleanup_logs


MUTANT = Mutant(
    name="retention-ends-at-first-idle-log",
    property="retention-runs",
    summary="a broker that deletes old segments stops at the first log that has none",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_manager",
            "LogManager.cleanup_logs",
            _up_to_the_first_idle_log,
        ),
    ),
    scenario="log-maintenance",
)
