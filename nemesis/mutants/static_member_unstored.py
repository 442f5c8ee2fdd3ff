"""A static member that comes back is answered before the group is written with its new member id (KAFKA-10284).

The next coordinator knows the former member id: it fences the process that lives, and takes the commits of the former.

Must be caught by: membership-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _unstored(correct: Callable[..., None]) -> Callable[..., None]:
    def _store_replacement(self: Any, *arguments: Any) -> None:
        groups, self._groups = self._groups, _NotStored()
        try:
            correct(self, *arguments)
        finally:
            self._groups = groups

    return _store_replacement


class _NotStored:
    """Says that each group is stored."""

    def store_group(
        self, _group: Any, _assignment: Any, on_stored: Callable[[ErrorCode], None]
    ) -> None:
        on_stored(ErrorCode.none)


MUTANT = Mutant(
    name="static-member-unstored",
    property="membership-kept",
    summary="a static member that comes back is not written under its new member id (KAFKA-10284)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_joins",
            "GroupJoins._store_replacement",
            _unstored,
        ),
    ),
    scenario="groups",
)
"""The bug."""
