"""A leader takes one in-sync replica for enough, and ignores min.insync.replicas.

The record that it acknowledges is on one disk.

Must be caught by: min-isr-behind-ack.
"""

from __future__ import annotations

from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _one_replica(_correct: Any) -> property:
    return property(lambda _partition: 1)


MUTANT = Mutant(
    name="min-isr-forgotten",
    property="min-isr-behind-ack",
    summary="min.insync.replicas counts as 1",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition.effective_min_isr",
            _one_replica,
            is_comparable=True,
        ),
    ),
)
