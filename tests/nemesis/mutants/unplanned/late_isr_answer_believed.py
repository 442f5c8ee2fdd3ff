"""The answer to an ISR change of before the last LeaderAndIsr is taken in (KAFKA-12686)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any, Any, Any], None]:
    def on_alter_partition(self: Any, proposed: Any, error: Any, result: Any) -> None:
        is_late = self.state is not proposed and self.is_leader and self.log is not None
        if result is not None and is_late:
            self._commit_isr(result)
        else:
            correct(self, proposed, error, result)

    return on_alter_partition


MUTANT = Mutant(
    name="late-isr-answer-believed",
    property="convergence",
    summary="the answer to an ISR change of before the last LeaderAndIsr is taken in (KAFKA-12686)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition._on_alter_partition",
            wrong,
        ),
    ),
    scenario="late-requests",
)
