"""Whoever becomes controller takes the office in the epoch of its predecessor.

The epoch is what tells a controller from the one before: without a new one nothing that a deposed controller says or
writes can be fenced. It is the multi of KAFKA-6082 that makes taking the office and raising the epoch one step.

Must be caught by: single-controller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Read = Callable[[Any], Awaitable[tuple[int, Any]]]


def _as_it_was(correct: Read) -> Read:
    async def get_or_create_controller_epoch(self: Any) -> tuple[int, Any]:
        epoch, stat = await correct(self)
        return max(epoch - 1, 0), stat

    return get_or_create_controller_epoch


MUTANT = Mutant(
    name="controller-epoch-not-raised",
    property="single-controller",
    summary="a new controller takes the office in the epoch of its predecessor",
    replacements=(
        Replacement(
            "nemesis.reference.zk.controller_election",
            "ControllerElection._get_or_create_controller_epoch",
            _as_it_was,
        ),
    ),
)
