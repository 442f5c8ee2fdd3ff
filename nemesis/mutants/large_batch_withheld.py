"""A consumer's fetch returns nothing when its first batch is larger than the fetch (KAFKA-2063).

A consumer stops at such a record for good, without an error: each fetch is answered that there is nothing, below the
high watermark. Kafka up to 0.10.0; since 0.10.1 the first batch is returned, of any size (KIP-74).

Must be caught by: withheld.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _within_the_limit(correct: Any) -> Callable[..., Any]:
    def fetch_records(
        partition: Any, params: Any, request: Any, *, min_one_message: bool, **options: Any
    ) -> Any:
        is_whole = min_one_message and params.is_from_follower
        return correct(partition, params, request, min_one_message=is_whole, **options)

    return fetch_records


MUTANT = Mutant(
    name="large-batch-withheld",
    property="withheld",
    summary="a fetch of a consumer returns nothing when the first batch is larger than the fetch (KIP-74)",
    replacements=(
        Replacement("nemesis.reference.server.record_fetches", "fetch_records", _within_the_limit),
    ),
    scenario="rich-clients",
)
