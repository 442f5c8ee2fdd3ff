"""A partition without a live in-sync replica is led by any other, whatever the configuration says.

So did Kafka by default up to 0.10.2 (KIP-106 turned ``unclean.leader.election.enable`` off in 0.11). Here nobody has
allowed it.

Must be caught by: leader-from-isr.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _always(_correct: Any) -> Callable[[Any, Any], bool]:
    def allows_unclean(_self: Any, _config: Any) -> bool:
        return True

    return allows_unclean


MUTANT = Mutant(
    name="unclean-election-unasked",
    property="leader-from-isr",
    summary="a leader from outside the ISR is elected though nothing permits it (the default before KIP-106)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.leader_elections",
            "LeaderElections._allows_unclean",
            _always,
            is_comparable=True,
        ),
    ),
)
