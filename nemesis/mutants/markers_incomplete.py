"""A coordinator leaves out the last partition of a transaction when it sends the markers.

The transaction is complete for its coordinator, and open in that partition. Readers of committed records wait there
until the producer's next marker, which may have the other outcome.

Must be caught by: torn-markers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement


def _incomplete(correct: Callable[..., None]) -> Callable[..., None]:
    def send(channels: Any, marker: Any, partitions: Iterable[Any], on_answer: Any) -> None:
        *others, last = sorted(partitions)
        correct(channels, marker, others or [last], on_answer)
        if others:
            asyncio.get_running_loop().call_soon(on_answer, {last: ErrorCode.none})

    return send


MUTANT = Mutant(
    name="markers-incomplete",
    property="torn-markers",
    summary="a coordinator sends markers to all partitions of a transaction but the last",
    replacements=(
        Replacement(
            "nemesis.reference.server.transaction_marker_channel_manager",
            "TransactionMarkerChannelManager.send",
            _incomplete,
        ),
    ),
    scenario="transactions",
)
"""The bug."""
