"""Members get their assignments, and the generation is never written.

The next coordinator knows an earlier generation, and begins the same one again with other members.

Must be caught by: generation-grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _early(correct: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    def _store(self: Any, group: Any, assignments: Any) -> None:
        groups, self._groups = self._groups, _NotStored()
        try:
            correct(self, group, assignments)
        finally:
            self._groups = groups

    return _store


class _NotStored:
    """Says that each group is stored."""

    def store_group(
        self, _group: Any, _assignment: Any, on_stored: Callable[[ErrorCode], None]
    ) -> None:
        on_stored(ErrorCode.none)


MUTANT = Mutant(
    name="assignments-answered-early",
    property="generation-grows",
    summary="members get their assignments although the generation is not in the log",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_syncs",
            "GroupSyncs._store",
            _early,
        ),
    ),
    scenario="groups",
)
"""The bug."""
