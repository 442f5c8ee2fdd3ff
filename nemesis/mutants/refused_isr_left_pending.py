"""A leader whose ISR was refused because a member is not eligible waits for a LeaderAndIsr that never comes.

The controller has changed nothing, so it has nothing to tell; the partition's ISR is frozen until the next election
(KAFKA-14140: the error that tells the leader to think again came with it).

Must be caught by: convergence.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _none(_correct: Any) -> frozenset[ErrorCode]:
    return frozenset()


def _these_too(correct: frozenset[ErrorCode]) -> frozenset[ErrorCode]:
    return correct | {ErrorCode.operation_not_attempted, ErrorCode.ineligible_replica}


MUTANT = Mutant(
    name="refused-isr-left-pending",
    property="convergence",
    summary="a leader does not take back an ISR that was refused for an ineligible member (KAFKA-14140)",
    replacements=(
        Replacement("nemesis.reference.cluster.partition", "_LEFT_PENDING", _these_too),
        Replacement("nemesis.reference.cluster.partition", "_REVERTED", _none),
    ),
)
