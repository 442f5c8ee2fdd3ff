"""A broker answers Metadata with all replicas of a partition as its in-sync replicas.

In Kafka 0.8 changes of the ISR did not reach the metadata of brokers, so clients and operators saw replicas in sync
that were not (KAFKA-1367). Here the cache is right, and the answer is not made from it.

Must be caught by: metadata-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Answer = Callable[..., dict[str, Any]]


def _all_in_sync(correct: Answer) -> Answer:
    def partition(snapshot: Any, state: Any) -> dict[str, Any]:
        return correct(snapshot, state) | {"isr_nodes": state.replicas}

    return partition


MUTANT = Mutant(
    name="replicas-answered-as-isr",
    property="metadata-answered",
    summary="Metadata answers all replicas of a partition as in sync (KAFKA-1367)",
    replacements=(
        Replacement(
            "nemesis.reference.server.apis.metadata",
            "_partition",
            _all_in_sync,
            is_comparable=True,
        ),
    ),
    scenario="rich-clients",
)
