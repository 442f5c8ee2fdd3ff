"""A late FENCED_LEADER_EPOCH stops a follower that has been told of the newer leader epoch meanwhile.

So did Kafka 2.1.0 (KAFKA-7786, mended in 2.1.1 and 2.2.0). The answer belongs to a request of the earlier epoch. Taken
for one about the partition as it is now, it takes the partition out of the fetcher, and no LeaderAndIsr will put it in
again: the follower stays out of the ISR.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _whatever_was_asked(correct: Any) -> Callable[..., None]:
    def _handle(self: Any, state: Any, error: ErrorCode, apply: Any, answer: Any) -> None:
        if error is ErrorCode.fenced_leader_epoch:
            self.remove(state.topic_partition)
        else:
            correct(self, state, error, apply, answer)

    return _handle


MUTANT = Mutant(
    name="late-fence-stops-fetcher",
    property="convergence",
    summary="a late FENCED_LEADER_EPOCH of an earlier leader epoch ends a follower's fetching (KAFKA-7786)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread._handle",
            _whatever_was_asked,
        ),
    ),
)
