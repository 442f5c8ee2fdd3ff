"""A fetcher looks a partition up that has been taken from it while its request was under way.

So did Kafka 2.1 (KAFKA-8012, fixed by pull request 6333): an answer came for a partition without a state, and the
replica fetcher thread ended with a NullPointerException. Here the exception reaches the edge of the fetcher, which goes
on after a pause, but the other partitions of the answer are not handled.

Must be caught by: no-unforeseen-exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_the_guard(correct: Any) -> Callable[..., None]:
    def _handle(self: Any, state: Any, error: Any, apply: Any, answer: Any) -> None:
        current = self._states[state.topic_partition]
        if current is state:
            correct(self, state, error, apply, answer)

    return _handle


MUTANT = Mutant(
    name="removed-partition-looked-up",
    property="no-unforeseen-exception",
    summary="a fetcher looks up the state of a partition that it no longer follows, and raises (KAFKA-8012)",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_fetcher_thread",
            "ReplicaFetcherThread._handle",
            _without_the_guard,
        ),
    ),
)
