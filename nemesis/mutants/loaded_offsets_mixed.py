"""A new coordinator knows the committed offsets that it loads by the number of their partition alone.

So the partitions of one number share the largest offset of all topics. Members that begin there pass over the records
before it.

Must be caught by: group-progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _mixed(correct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def groups(self: Any, wall_clock: Any) -> Any:
        for offsets in self._offsets.values():
            largest: dict[int, Any] = {}
            for tp, committed in offsets.items():
                known = largest.setdefault(tp.partition, committed)
                if known.offset_and_metadata.offset < committed.offset_and_metadata.offset:
                    largest[tp.partition] = committed
            offsets.update({tp: largest[tp.partition] for tp in offsets})
        return correct(self, wall_clock)

    return groups


MUTANT = Mutant(
    name="loaded-offsets-mixed",
    property="group-progress",
    summary="a new coordinator mixes up the offsets of partitions with one number that it loads",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_loading", "LoadedRecords.groups", _mixed
        ),
    ),
    scenario="groups",
)
"""The bug."""
