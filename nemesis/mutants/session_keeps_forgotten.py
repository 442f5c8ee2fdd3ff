"""A fetch session goes on with the partitions that its client has removed from it (KIP-227).

The broker reads them for every fetch, and answers with records that the client has not asked for. A client that knows
its session refuses such an answer, and begins a session again.

Must be caught by: fetches-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _forgetting_nothing(correct: Any) -> Callable[..., None]:
    def update(session: Any, requests: Any, forgotten: Any, topic_name: Any) -> None:
        del forgotten
        correct(session, requests, (), topic_name)

    return update


MUTANT = Mutant(
    name="session-keeps-forgotten",
    property="fetches-answered",
    summary="a fetch session goes on with the partitions that its client has removed from it (KIP-227)",
    replacements=(
        Replacement(
            "nemesis.reference.server.fetch_session", "FetchSession.update", _forgetting_nothing
        ),
    ),
    scenario="rich-clients",
)
