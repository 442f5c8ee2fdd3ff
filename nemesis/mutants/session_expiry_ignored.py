"""The session of a member ends, and nothing follows.

The partitions of a member that has crashed belong to it until the next member comes.

Must be caught by: rebalances-end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _ignored(_correct: Any) -> Callable[[Any, Any, str], None]:
    def _expire(_self: Any, _group: Any, _member_id: str) -> None:
        return None

    return _expire


MUTANT = Mutant(
    name="session-expiry-ignored",
    property="rebalances-end",
    summary="a member whose session has ended stays in its group",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.heartbeats",
            "Heartbeats._expire",
            _ignored,
        ),
    ),
    scenario="groups",
)
"""The bug."""
