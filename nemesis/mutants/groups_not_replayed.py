"""A new coordinator loads the offsets of its groups and not the groups.

Their members are unknown, join again, and the generations begin at 1. Members of the generations before are not fenced
from the next ones.

Must be caught by: generation-grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _offsets_alone(correct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def groups(self: Any, wall_clock: Any) -> Any:
        self._groups.clear()
        return correct(self, wall_clock)

    return groups


MUTANT = Mutant(
    name="groups-not-replayed",
    property="generation-grows",
    summary="a new coordinator loads the offsets of its groups, and forgets generations and members",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_loading",
            "LoadedRecords.groups",
            _offsets_alone,
        ),
    ),
    scenario="groups",
)
"""The bug."""
