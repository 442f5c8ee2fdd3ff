"""A fetch session reports an error of a partition once, and nothing afterwards until records come (KIP-227).

Kafka reports an error in every answer as long as it lasts. Here a client that is left without an answer about a
partition takes it for unchanged.

Must be caught by: fetches-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _once(correct: Any) -> Callable[..., Any]:
    def changes(session: Any, results: Any) -> Any:
        reported = session.__dict__.setdefault("_known_errors", {})
        answer = correct(session, results)
        for key, result in results.items():
            is_known = result.error.value != 0 and reported.get(key) == result.error
            reported[key] = result.error
            if is_known:
                answer.pop(key, None)
        return answer

    return changes


MUTANT = Mutant(
    name="error-reported-once",
    property="fetches-answered",
    summary="a fetch session reports an error of a partition once, and nothing afterwards until records come (KIP-227)",
    replacements=(
        Replacement("nemesis.reference.server.fetch_session", "FetchSession.changes", _once),
    ),
    scenario="rich-clients",
)
