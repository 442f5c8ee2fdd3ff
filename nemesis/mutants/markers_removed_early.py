"""Compaction removes all markers that it comes by, whether or not there are records of their transactions.

The last record of each key stays, and a broker that reads the log again holds its transaction open.

Must be caught by: markers-kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _early(correct: Callable[[Any, bytes, Any], bytes]) -> Callable[[Any, bytes, Any], bytes]:
    def retained(record_filter: Any, batch: bytes, header: Any) -> bytes:
        correct(record_filter, batch, header)
        return b""

    return retained


MUTANT = Mutant(
    name="markers-removed-early",
    property="markers-kept",
    summary="compaction removes markers of transactions that still have records",
    replacements=(
        Replacement(
            "nemesis.reference.log.record_filter",
            "RecordFilter._retained_marker",
            _early,
            is_comparable=True,
        ),
    ),
    scenario="transactions",
)
