"""A fetch session reports an error of a partition once, and nothing afterwards until records come (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[..., Any]:
    def changes(self: Any, results: Any) -> Any:
        reported = self.__dict__.setdefault("_known_errors", {})
        answer = correct(self, results)
        for key, result in results.items():
            is_known = result.error.value != 0 and reported.get(key) == result.error
            reported[key] = result.error
            if is_known:
                answer.pop(key, None)
        return answer

    return changes


MUTANT = Mutant(
    name="error-reported-once",
    property="late-recovery",
    summary="a fetch session reports an error of a partition once, and nothing afterwards until records come (KIP-227)",
    replacements=(
        Replacement("nemesis.reference.server.fetch_session", "FetchSession.changes", wrong),
    ),
    scenario="partition-controller",
)
"""The bug."""
