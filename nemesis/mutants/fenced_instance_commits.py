"""OffsetCommit does not compare the member id of a static member with the one that its instance has now.

A process that was taken over while it slept commits what it had read, over what its successor has committed (KIP-345).

Must be caught by: fenced-member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _unfenced(correct: Callable[..., Any]) -> Callable[..., Any]:
    def member_error(group: Any, member_id: str, group_instance_id: str | None) -> Any:
        is_taken_over = member_id != group.static_members.get(group_instance_id, member_id)
        return None if is_taken_over else correct(group, member_id, group_instance_id)

    return member_error


MUTANT = Mutant(
    name="fenced-instance-commits",
    property="fenced-member",
    summary="a coordinator takes the commits of a static member's process that was taken over (KIP-345)",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.offset_commits",
            "member_error",
            _unfenced,
            is_comparable=True,
        ),
    ),
    scenario="groups",
)
"""The bug."""
