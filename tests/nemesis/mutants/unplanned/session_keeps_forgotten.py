"""A fetch session goes on with the partitions that its client has forgotten (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., None]:
    def update(self: Any, requests: Any, forgotten: Any, topic_name: Any) -> None:
        del forgotten
        correct(self, requests, (), topic_name)

    return update


MUTANT = Mutant(
    name="session-keeps-forgotten",
    property="late-recovery",
    summary="a fetch session goes on with the partitions that its client has forgotten (KIP-227)",
    replacements=(
        Replacement("nemesis.reference.server.fetch_session", "FetchSession.update", wrong),
    ),
    scenario="partition-controller",
)
"""The bug."""
