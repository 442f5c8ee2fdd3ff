"""A leader finds every member of its ISR in sync, even one that fetches nothing.

A follower that no longer fetches stays in the ISR. Nothing with acks=all is committed until it fetches again or its
session ends: one slow broker stops the partition, which the ISR exists to prevent.

Must be caught by: isr-shrinks-in-time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _finds_no_laggard(_correct: Callable[..., frozenset[int]]) -> Callable[..., frozenset[int]]:
    def out_of_sync_replicas(_partition: Any, _leader_end_offset: int) -> frozenset[int]:
        return frozenset()

    return out_of_sync_replicas


MUTANT = Mutant(
    name="laggards-kept",
    property="isr-shrinks-in-time",
    summary="a leader never takes a follower that lags out of its ISR",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition",
            "Partition._out_of_sync_replicas",
            _finds_no_laggard,
            is_comparable=True,
        ),
    ),
)
