"""A fetch session drops the leader epoch of a partition after its first fetch (KAFKA-9338)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(_correct: Any) -> Callable[[Any, Any], Any]:
    def remembered(self: Any, request: Any) -> Any:
        return request._replace(current_leader_epoch=-1)

    return remembered


MUTANT = Mutant(
    name="session-forgets-leader-epoch",
    property="isr-join-caught-up",
    summary="a fetch session drops the leader epoch of a partition after its first fetch (KAFKA-9338)",
    replacements=(
        Replacement(
            "nemesis.reference.server.fetch_session",
            "FetchSession.remembered",
            wrong,
        ),
    ),
    scenario="partition-controller",
)
