"""That a group is empty is not stored, so its next coordinator brings its last members back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., None]:
    def store_group(self: Any, group: Any, assignment: Any, on_stored: Any) -> None:
        if assignment or group.members:
            correct(self, group, assignment, on_stored)

    return store_group


MUTANT = Mutant(
    name="empty-group-not-stored",
    property="rebalances-end",
    summary="that a group is empty is not stored, so its next coordinator brings its last members back",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_metadata_manager",
            "GroupMetadataManager.store_group",
            wrong,
        ),
    ),
    scenario="groups",
)
"""The bug."""
