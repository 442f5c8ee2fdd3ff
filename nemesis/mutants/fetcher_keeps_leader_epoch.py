"""A follower goes on fetching in the leader epoch in which it began, as long as its leader stays the same.

So did Kafka before KAFKA-7164: a LeaderAndIsr that raises the leader epoch only did not restart the fetcher. The leader
fences it, and nobody tells it anything new: it stays out of the ISR.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _first_epoch(correct: Any) -> Callable[[Any, Any], None]:
    def add(self: Any, state: Any) -> None:
        began = self.__dict__.setdefault("_began", {})
        state.leader_epoch = began.setdefault(state.topic_partition, state.leader_epoch)
        correct(self, state)

    return add


MUTANT = Mutant(
    name="fetcher-keeps-leader-epoch",
    property="convergence",
    summary="a fetcher keeps the leader epoch in which it began to follow that leader (KAFKA-7164)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread.add",
            _first_epoch,
        ),
    ),
)
