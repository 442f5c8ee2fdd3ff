"""A group that all members have left begins again with generation 1.

A member that was away for long is in a generation that comes again: its requests are accepted.

Must be caught by: generation-grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _begins_again(correct: Callable[[Any], None]) -> Callable[[Any], None]:
    def init_next_generation(self: Any) -> None:
        correct(self)
        if not self.members:
            self.generation_id = 0

    return init_next_generation


MUTANT = Mutant(
    name="empty-group-begins-again",
    property="generation-grows",
    summary="a group that all members have left begins again with generation 1",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_metadata",
            "GroupMetadata.init_next_generation",
            _begins_again,
        ),
    ),
    scenario="groups",
)
"""The bug."""
