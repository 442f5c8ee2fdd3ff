"""SyncGroup is answered before the assignment is replicated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any, Any, Callable[[ErrorCode], None]], None]:
    def store_group(
        self: Any, group: Any, assignment: Any, on_stored: Callable[[ErrorCode], None]
    ) -> None:
        correct(self, group, assignment, lambda error: None)
        on_stored(ErrorCode.none)

    return store_group


MUTANT = Mutant(
    name="assignment-answered-early",
    property="generation-grows",
    summary="syncGroup is answered before the assignment is replicated",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_metadata_manager",
            "GroupMetadataManager.store_group",
            wrong,
        ),
    ),
    scenario="groups",
)
