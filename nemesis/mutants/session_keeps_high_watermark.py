"""In a fetch session a leader does not report that only the high watermark or the log start has moved.

KIP-227 leaves out of an answer what the follower knows already. Here every partition without records is left out, so
the follower hears of the last high watermark with the next records: never, when there are none.

Must be caught by: offsets-at-rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _records_alone(correct: Any) -> Callable[[Any, Any], Any]:
    def changes(session: Any, results: Any) -> Any:
        return {
            key: result
            for key, result in correct(session, results).items()
            if result.records or result.is_urgent
        }

    return changes


MUTANT = Mutant(
    name="session-keeps-high-watermark",
    property="offsets-at-rest",
    summary="a fetch session leaves out a partition of which only the high watermark or the log start moved (KIP-227)",
    replacements=(
        Replacement(
            "nemesis.reference.server.fetch_session", "FetchSession.changes", _records_alone
        ),
    ),
)
