"""A coordinator that resigns leaves the JoinGroups that wait unanswered.

Their members wait until their own time-outs, and the next coordinator waits for them.

Must be caught by: rebalances-end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _left(correct: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def on_group_unloaded(self: Any, group: Any) -> None:
        for member in group.members.values():
            member.awaiting_join = None
        correct(self, group)

    return on_group_unloaded


MUTANT = Mutant(
    name="waiting-joins-left",
    property="rebalances-end",
    summary="a coordinator that resigns leaves the JoinGroups that wait unanswered",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.rebalances",
            "Rebalances.on_group_unloaded",
            _left,
        ),
    ),
    scenario="groups",
)
"""The bug."""
