"""A broker does not name the aborted transactions in its answer to a reader of committed records.

Readers leave out what is named, and nothing else: they return the records of aborted transactions (KIP-98).

Must be caught by: aborted-read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _unnamed(_correct: Any) -> Callable[..., tuple[()]]:
    def _aborted(*_arguments: Any) -> tuple[()]:
        return ()

    return _aborted


MUTANT = Mutant(
    name="aborted-transactions-unnamed",
    property="aborted-read",
    summary="a broker names no aborted transactions to readers of committed records (KIP-98)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition_reads", "_aborted", _unnamed, is_comparable=True
        ),
    ),
    scenario="transactions",
)
"""The bug."""
