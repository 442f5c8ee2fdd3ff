"""The last stable offset is found with two looks at the high watermark, which moves between them (KAFKA-9807).

The first unstable offset is not below the former high watermark, so the answer is the present one, which lies beyond
it. Readers of committed records are given records of open transactions. Kafka up to 2.5; fixed in 2.6.0.

Must be caught by: read-beyond-lso.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _torn_apart(correct: Callable[..., int]) -> Callable[..., int]:
    def update_high_watermark(log: Any, offset: int) -> int:
        before = log.high_watermark
        after = correct(log, offset)
        first = log._transactions.first_unstable_offset  # noqa: SLF001
        if first is not None and before <= first < after:
            log.last_stable_offset = after
        return after

    return update_high_watermark


MUTANT = Mutant(
    name="high-watermark-read-twice",
    property="read-beyond-lso",
    summary="the last stable offset is taken from two high watermarks, an older and a newer one (KAFKA-9807)",
    replacements=(
        Replacement("nemesis.reference.log.log", "Log.update_high_watermark", _torn_apart),
    ),
    scenario="transactions",
)
"""The bug."""
