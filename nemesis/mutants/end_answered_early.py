"""A new leader answers ListOffsets before its high watermark has reached the start of its epoch (KAFKA-2334).

Its high watermark may lag behind what its predecessor answered, so clients see the end of a partition go back. Kafka up
to 2.1; fixed in 2.2.0 (KIP-207).

Must be caught by: client-offsets-grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_a_start(correct: Any) -> Callable[..., Any]:
    def list_offset(partition: Any, *arguments: Any) -> Any:
        start = partition.leader_epoch_start_offset
        partition.leader_epoch_start_offset = None
        try:
            return correct(partition, *arguments)
        finally:
            partition.leader_epoch_start_offset = start

    return list_offset


MUTANT = Mutant(
    name="end-answered-early",
    property="client-offsets-grow",
    summary="a new leader answers ListOffsets below the start of its epoch (KAFKA-2334, KIP-207)",
    replacements=(
        Replacement("nemesis.reference.server.offset_lookups", "list_offset", _without_a_start),
    ),
    scenario="rich-clients",
)
