"""A broker takes the milliseconds that a consumer's fetch may wait for seconds.

Where records come at once no client notices it. The consumer of a partition at rest gets no answer before it gives up,
and asks again.

Must be caught by: requests-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

_MS_PER_S = 1000


def _in_seconds(correct: Any) -> Callable[..., Any]:
    def fetch(self: Any, params: Any, requests: Any, respond: Any) -> Any:
        if not params.is_from_follower:
            params = params._replace(max_wait_ms=params.max_wait_ms * _MS_PER_S)
        return correct(self, params, requests, respond)

    return fetch


MUTANT = Mutant(
    name="fetch-wait-in-seconds",
    property="requests-answered",
    summary="a fetch of a consumer waits for as many seconds as it permits milliseconds",
    replacements=(
        Replacement("nemesis.reference.server.record_fetches", "RecordFetches.fetch", _in_seconds),
    ),
)
