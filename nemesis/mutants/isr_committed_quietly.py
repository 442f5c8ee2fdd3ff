"""A leader takes a committed ISR in, and does nothing else: its high watermark waits for the next fetch or append.

The replica that left the ISR held the high watermark back. What the others have is committed, and the leader does not
notice: acknowledgements wait, on an idle partition until the leader looks at its followers again (KAFKA-13091).

Must be caught by: hw-follows-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Commit = Callable[[Any, Any], None]


def _looks_at_nothing_else(correct: Commit) -> Commit:
    def commit_isr(partition: Any, result: Any) -> None:
        partition.maybe_increment_leader_hw = bool
        try:
            correct(partition, result)
        finally:
            del partition.maybe_increment_leader_hw

    return commit_isr


MUTANT = Mutant(
    name="isr-committed-quietly",
    property="hw-follows-isr",
    summary="a leader does not compute its high watermark when its ISR has changed (KAFKA-13091)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition", "Partition._commit_isr", _looks_at_nothing_else
        ),
    ),
)
