"""A broker that stops does not sync a log that is committed to its end, because other replicas have its records.

The mark of a clean stop is written all the same, so the next start does not recover the log.

Must be caught by: clean-stop-keeps-logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _sparing(correct: Callable[[Any], None]) -> Callable[[Any], None]:
    def close(log: Any) -> None:
        if log.high_watermark == log.log_end_offset:
            log.recovery_point = log.log_end_offset
        correct(log)

    return close


MUTANT = Mutant(
    name="committed-logs-unsynced",
    property="clean-stop-keeps-logs",
    summary="a broker that stops does not sync logs whose records are all committed",
    replacements=(Replacement("nemesis.reference.log.log", "Log.close", _sparing),),
    scenario="machine-faults",
)
