"""A broker takes ``retention.ms`` for a number of other units, so records go in a tenth of their time.

Kafka has the same bound in hours, minutes and milliseconds (``log.retention.hours``, ``.minutes``, ``.ms``), and all of
them end up in one number. Consumers that are slow find that the log starts behind their position.

Must be caught by: segments-deleted-by-rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Count = Callable[..., int]


def _ages_fast(correct: Count) -> Count:
    def deletable_segments(log: Any, *, now_ms: int) -> int:
        retention_ms = log.config.retention_ms
        return correct(log, now_ms=now_ms + retention_ms * 9 // 10)

    return deletable_segments


MUTANT = Mutant(
    name="age-in-other-units",
    property="segments-deleted-by-rule",
    summary="a broker deletes segments after a tenth of retention.ms",
    replacements=(
        Replacement(
            "nemesis.reference.log.log",
            "deletable_segments",
            _ages_fast,
            is_comparable=True,
        ),
    ),
    scenario="log-maintenance",
)
