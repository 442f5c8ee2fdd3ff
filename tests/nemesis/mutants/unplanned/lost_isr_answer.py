"""A leader ignores the answer that the ISR has the partition epoch that it knows already (KAFKA-14144)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any], None]:
    def commit_isr(self: Any, result: Any) -> None:
        if result.partition_epoch > self.partition_epoch:
            correct(self, result)

    return commit_isr


MUTANT = Mutant(
    name="lost-isr-answer",
    property="convergence",
    summary="a leader ignores the answer that the ISR has the partition epoch that it knows already (KAFKA-14144)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition._commit_isr",
            wrong,
        ),
    ),
    scenario="late-requests",
)
