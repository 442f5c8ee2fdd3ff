"""A broker lets readers of committed records read up to the high watermark.

They are given records of transactions that are still open, which may yet be aborted (KIP-98).

Must be caught by: read-beyond-lso.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.model import FetchIsolation


def _unstable(correct: Callable[..., int]) -> Callable[..., int]:
    def _end_for(log: Any, isolation: FetchIsolation) -> int:
        is_committed = isolation is FetchIsolation.TXN_COMMITTED
        return correct(log, FetchIsolation.HIGH_WATERMARK if is_committed else isolation)

    return _end_for


MUTANT = Mutant(
    name="last-stable-offset-ignored",
    property="read-beyond-lso",
    summary="readers of committed records read up to the high watermark (KIP-98)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition_reads", "_end_for", _unstable, is_comparable=True
        ),
    ),
    scenario="transactions",
)
"""The bug."""
