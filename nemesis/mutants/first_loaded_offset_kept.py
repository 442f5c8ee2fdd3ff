"""A new coordinator keeps the first offset of each partition that it loads.

What was committed later is in the log, and the group goes on where it was long ago.

Must be caught by: offsets-read-as-committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _first_kept(correct: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    def _take_in_offset(self: Any, key: Any, committed: Any) -> None:
        if key.topic_partition not in self._offsets.get(key.group_id, {}):
            correct(self, key, committed)

    return _take_in_offset


MUTANT = Mutant(
    name="first-loaded-offset-kept",
    property="offsets-read-as-committed",
    summary="a new coordinator keeps the first offset of a partition that it loads, not the last",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_loading",
            "LoadedRecords._take_in_offset",
            _first_kept,
        ),
    ),
    scenario="groups",
)
"""The bug."""
