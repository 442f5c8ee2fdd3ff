"""A follower does not let its log start where its leader's does.

What a client has deleted stays on the followers, and DeleteRecords waits for them in vain. If one of them is elected,
the records are there again (KIP-107).

Must be caught by: offsets-at-rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_a_start(correct: Any) -> Callable[..., None]:
    def append_as_follower(
        replica: Any, records: bytes, high_watermark: int, _log_start_offset: int = -1
    ) -> None:
        correct(replica, records, high_watermark)

    return append_as_follower


MUTANT = Mutant(
    name="follower-keeps-log-start",
    property="offsets-at-rest",
    summary="a follower ignores where its leader's log starts, so deleted records stay there (KIP-107)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.local_replica",
            "LocalReplica.append_as_follower",
            _without_a_start,
        ),
    ),
    scenario="log-maintenance",
)
