"""A rebalance keeps the number of the generation.

The members are other ones, the assignment is another one, and the coordinator cannot distinguish a member of the
generation that has ended from a member of the next one.

Must be caught by: one-owner-per-generation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

_FIRST = 1


def _kept(correct: Callable[[Any], None]) -> Callable[[Any], None]:
    def init_next_generation(self: Any) -> None:
        correct(self)
        self.generation_id = _FIRST

    return init_next_generation


MUTANT = Mutant(
    name="generation-kept",
    property="one-owner-per-generation",
    summary="a rebalance of a group does not raise the generation",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_metadata",
            "GroupMetadata.init_next_generation",
            _kept,
        ),
    ),
    scenario="groups",
)
"""The bug."""
