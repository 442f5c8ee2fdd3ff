"""A coordinator takes the commits of anyone who names a generation, whether it is the last one or not.

A member that was away for longer than its session overwrites what the next owner of its partitions has committed.

Must be caught by: fenced-member.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _not_refused(_correct: Any) -> Callable[[Any, Any], None]:
    def _refusal(_group: Any, _request: Any) -> None:
        return None

    return _refusal


MUTANT = Mutant(
    name="commits-unchecked",
    property="fenced-member",
    summary="a coordinator checks neither member nor generation of a commit",
    replacements=(
        Replacement(
            "nemesis.reference.coordinator.group.offset_commits",
            "_refusal",
            _not_refused,
            is_comparable=True,
        ),
    ),
    scenario="groups",
)
"""The bug."""
