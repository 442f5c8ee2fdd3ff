"""ListOffsets answers a time with the newest batch that is young enough, not with the oldest one.

The search goes through a segment to its end and keeps the last match. A consumer that begins at a time skips
every record before the last batch.

Must be caught by: times-answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _last_match(_correct: Any) -> Callable[..., Any]:
    def first_batch_from_timestamp(self: Any, timestamp: int, start_offset: int) -> Any:
        matches = [
            header
            for header in self.batches_from(0)
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset
        ]
        return matches[-1] if matches else None

    return first_batch_from_timestamp


MUTANT = Mutant(
    name="newest-batch-answered",
    property="times-answered",
    summary="ListOffsets answers a time with the newest batch that is young enough",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_segment",
            "LogSegment.first_batch_from_timestamp",
            _last_match,
            is_comparable=True,
        ),
    ),
    scenario="rich-clients",
)
