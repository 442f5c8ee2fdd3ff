"""A fetch session of a consumer goes on with the partitions that the consumer has removed from it (KIP-227).

The broker reads them for every fetch, and answers with records that the client has not asked for. A client that knows
its session refuses such an answer, and begins a session again. Sessions of followers are as they should be: with the
bug in them, too, a simulated run takes minutes instead of seconds.

Must be caught by: fetches-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _forgetting_nothing(correct: Any) -> Callable[..., None]:
    def update(session: Any, requests: Any, forgotten: Any, topic_name: Any) -> None:
        kept = forgotten if session.is_privileged else ()
        correct(session, requests, kept, topic_name)

    return update


MUTANT = Mutant(
    name="session-keeps-forgotten",
    property="fetches-answered",
    summary="a fetch session of a consumer goes on with the partitions that are removed from it (KIP-227)",
    replacements=(
        Replacement(
            "nemesis.reference.server.fetch_session", "FetchSession.update", _forgetting_nothing
        ),
    ),
    scenario="rich-clients",
)
