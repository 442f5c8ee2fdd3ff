"""A broker writes the checkpoint of its high watermarks twice in each interval that is configured for it.

Nothing is wrong with the files, and no client notices: the disks work twice as hard as the operator has configured.
A unit that is confused when an interval is read does the same to any job.

Must be caught by: jobs-on-time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Schedule = Callable[..., None]


def _writes_twice_as_often(correct: Schedule) -> Schedule:
    def schedule(self: Any, name: str, job: Any, *, period_s: float) -> None:
        faster_s = period_s / 2 if name == "highwatermark-checkpoint" else period_s
        correct(self, name, job, period_s=faster_s)

    return schedule


MUTANT = Mutant(
    name="marks-checkpointed-too-often",
    property="jobs-on-time",
    summary="a broker checkpoints its high watermarks twice in each interval",
    replacements=(
        Replacement(
            "nemesis.reference.kafka_scheduler",
            "KafkaScheduler.schedule",
            _writes_twice_as_often,
        ),
    ),
)
