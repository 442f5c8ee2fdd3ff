"""A follower whose fetch gets no answer does not fetch these partitions again.

Kafka's fetcher waits for ``replica.fetch.backoff.ms`` and goes on. Here the follower stays out of the ISR until another
event brings a LeaderAndIsr in a newer leader epoch. A leader that both of its followers have given up has fewer in-sync
replicas than ``min.insync.replicas``, and takes no records long after the network works again.

Must be caught by: late-recovery.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.network.errors import NetworkError

Ask = Callable[[Any, Any, Awaitable[None]], Awaitable[None]]


def _gives_up(correct: Ask) -> Ask:
    async def ask(self: Any, due: Any, conversation: Awaitable[None]) -> None:
        async def once() -> None:
            try:
                await conversation
            except NetworkError:
                for state in list(due.values()):
                    self.remove(state.topic_partition)

        await correct(self, due, once())

    return ask


MUTANT = Mutant(
    name="fetcher-gives-up",
    property="late-recovery",
    summary="a follower whose fetch gets no answer never fetches these partitions again",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread._ask",
            _gives_up,
        ),
    ),
    scenario="recovery",
)
