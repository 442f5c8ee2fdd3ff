"""A new controller does not go on with the deletions that its predecessor had begun."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(_correct: Any) -> Callable[[Any], Awaitable[None]]:
    async def init(self: Any) -> None:
        pass

    return init


MUTANT = Mutant(
    name="deletions-not-resumed",
    property="convergence",
    summary="a new controller does not go on with the deletions that its predecessor had begun",
    replacements=(
        Replacement(
            "nemesis.reference.controller.topic_deletion_manager",
            "TopicDeletionManager.init",
            wrong,
        ),
    ),
    scenario="topics",
)
