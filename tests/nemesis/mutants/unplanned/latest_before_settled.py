"""A new leader answers the latest offset before its high watermark is in its epoch (KIP-207)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., Any]:
    def list_offset(partition: Any, timestamp: int, epoch: int, replica_id: int) -> Any:
        start = partition.leader_epoch_start_offset
        partition.leader_epoch_start_offset = None
        try:
            return correct(partition, timestamp, epoch, replica_id)
        finally:
            partition.leader_epoch_start_offset = start

    return list_offset


MUTANT = Mutant(
    name="latest-before-settled",
    property="client-offsets-grow",
    summary="a new leader answers the latest offset before its high watermark is in its epoch (KIP-207)",
    replacements=(Replacement("nemesis.reference.server.offset_lookups", "list_offset", wrong),),
    scenario="partition-controller",
)
"""The bug."""
