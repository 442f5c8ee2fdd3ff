"""Members get their assignments, and the generation is never written.

The next coordinator knows an earlier generation, and begins the same one again with other members.

Must be caught by: generation-grows.
"""

from __future__ import annotations

from nemesis.mutants.base import Mutant, Replacement
from nemesis.mutants.unstored_groups import without_storing

MUTANT = Mutant(
    name="assignments-answered-early",
    property="generation-grows",
    summary="members get their assignments although the generation is not in the log",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_syncs",
            "GroupSyncs._store",
            without_storing,
        ),
    ),
    scenario="groups",
)
"""The bug."""
