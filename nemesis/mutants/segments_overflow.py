"""A segment takes one batch too many.

Whether the next batch still fits is decided without it: a segment is full only when it already has more than
``segment.bytes``. Positions in an index are 32 bits wide, so with the largest permitted segment this corrupts a log.

Must be caught by: segments-roll.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_the_batch(correct: Callable[..., bool]) -> Callable[..., bool]:
    def _should_roll(self: Any, segment: Any, more_bytes: int, headers: Any) -> bool:
        del more_bytes
        return correct(self, segment, 0, headers)

    return _should_roll


MUTANT = Mutant(
    name="segments-overflow",
    property="segments-roll",
    summary="a segment is full only when it already has more than segment.bytes",
    replacements=(
        Replacement(
            "nemesis.reference.log.local_log",
            "LocalLog._should_roll",
            _without_the_batch,
            is_comparable=True,
        ),
    ),
    scenario="log-maintenance",
)
