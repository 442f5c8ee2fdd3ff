"""Where a consumer's answer is put together from two reads, the batch at the seam is lost.

An off-by-one of a reader that goes on behind the next offset instead of at it. Followers get what they should,
so that the logs agree: only consumers can tell.

Must be caught by: poll-skip.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import FetchIsolation
from nemesis.reference.protocol.record_batch import iter_batches

LEAST_BATCHES = 3
"""A shorter answer is one read."""


def seam(times: int) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes a read whose batch at the seam is there so many times."""

    def make(correct: Any) -> Callable[..., Any]:
        def read(log: Any, isolation: FetchIsolation, *arguments: Any, **options: Any) -> Any:
            result = correct(log, isolation, *arguments, **options)
            if isolation is FetchIsolation.LOG_END:
                return result
            return result._replace(records=_joined(result.records, times))

        return read

    return make


def _joined(records: bytes, times: int) -> bytes:
    batches = list(iter_batches(records))
    if len(batches) < LEAST_BATCHES:
        return records
    middle = batches[len(batches) // 2]
    start, end = middle.position, middle.position + middle.size_in_bytes
    return records[:start] + records[start:end] * times + records[end:]


MUTANT = Mutant(
    name="read-seam-lost",
    property="poll-skip",
    summary="an answer to a consumer that is made of two reads lacks the batch between them",
    replacements=(
        Replacement("nemesis.reference.cluster.partition_reads", "_read", seam(times=0)),
    ),
)
