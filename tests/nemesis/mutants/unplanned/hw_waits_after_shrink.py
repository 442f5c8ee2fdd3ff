"""The high watermark is not looked at when an ISR without the laggard is committed (KAFKA-13091)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any], None]:
    def commit_isr(self: Any, result: Any) -> None:
        self.maybe_increment_leader_hw = lambda: False
        try:
            correct(self, result)
        finally:
            del self.maybe_increment_leader_hw

    return commit_isr


MUTANT = Mutant(
    name="hw-waits-after-shrink",
    property="late-recovery",
    summary="the high watermark is not looked at when an ISR without the laggard is committed (KAFKA-13091)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition._commit_isr",
            wrong,
        ),
    ),
    scenario="partition-controller",
)
