"""A controller that finds nothing to balance does not look again.

The next look is scheduled by the election that the present one makes. The first look of a controller, soon after its
failover, mostly finds nothing: brokers that come back later never lead again, and one broker is left with all leaders.

Must be caught by: leaders-balanced.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _only_with_elections(
    correct: Callable[[Any], Awaitable[None]],
) -> Callable[[Any], Awaitable[None]]:
    async def process(self: Any) -> None:
        if self._imbalanced():
            await correct(self)

    return process


MUTANT = Mutant(
    name="balance-ends-when-idle",
    property="leaders-balanced",
    summary="a controller that finds nothing to balance does not schedule the next look",
    replacements=(
        Replacement(
            "nemesis.reference.controller.auto_leader_rebalance",
            "AutoLeaderRebalance.process",
            _only_with_elections,
        ),
    ),
    scenario="idempotent-producers",
)
