"""A new follower fetches from the end of its log without asking the leader where the logs part.

The smallest wrong step of Kafka's replication: the TLA+ specifications of KIP-101 to KIP-320 have it as the variant
without truncation. What a deposed leader appended and nobody else has stays in its log, and other records follow.

Planted under ``inter.broker.protocol.version`` 2.6, where a fetch does not say of which epoch the last record is.

Must be caught by: log-matching.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _never(correct: Any) -> Callable[[Any, Any], None]:
    def add(self: Any, state: Any) -> None:
        correct(self, state)
        state.is_truncating = False

    return add


MUTANT = Mutant(
    name="no-truncation",
    property="log-matching",
    summary="a new follower fetches without asking its leader where to truncate",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread", "ReplicaFetcherThread.add", _never
        ),
    ),
    scenario="isr-by-zookeeper",
)
