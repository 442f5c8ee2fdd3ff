"""A static member that comes back is answered before the group is written with its new member id (KAFKA-10284).

The next coordinator knows the former member id: it fences the process that lives, and takes the commits of the former.

Must be caught by: membership-kept.
"""

from __future__ import annotations

from nemesis.mutants.base import Mutant, Replacement
from nemesis.mutants.unstored_groups import without_storing

MUTANT = Mutant(
    name="static-member-unstored",
    property="membership-kept",
    summary="a static member that comes back is not written under its new member id (KAFKA-10284)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.group_joins",
            "GroupJoins._store_replacement",
            without_storing,
        ),
    ),
    scenario="groups",
)
"""The bug."""
