"""A leader looks at its followers every lag time instead of every half of it.

Kafka 0.8 did so: a follower could lag for twice ``replica.lag.time.max.ms`` and stay in the ISR. Whether it stays too
long depends on when it began to lag.

Must be caught by: isr-shrinks-in-time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Schedule = Callable[..., None]


def _looks_half_as_often(correct: Schedule) -> Schedule:
    def schedule(self: Any, name: str, job: Any, *, period_s: float) -> None:
        slower_s = 2 * period_s if name == "isr-expiration" else period_s
        correct(self, name, job, period_s=slower_s)

    return schedule


MUTANT = Mutant(
    name="laggards-noticed-late",
    property="isr-shrinks-in-time",
    summary="a leader looks at its followers every replica.lag.time.max.ms, not every half of it",
    replacements=(
        Replacement(
            "nemesis.reference.kafka_scheduler",
            "KafkaScheduler.schedule",
            _looks_half_as_often,
        ),
    ),
)
