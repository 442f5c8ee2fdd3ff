"""A cleaner takes in all segments but the last, whether or not what they hold is committed.

A record above the high watermark then supersedes a committed one of the same key; when a new leader's log lacks it, it
is truncated, and the key has lost both. kafka.log.LogCleanerManager.cleanableOffsets stops at the last stable offset,
which is never above the high watermark.

Must be caught by: log-start-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _up_to_the_last_segment(_correct: Any) -> Callable[..., int]:
    def first_uncleanable_offset(log: Any, _first_dirty_offset: int, _now_ms: int) -> int:
        last: int = log.segments[-1].base_offset
        return last

    return first_uncleanable_offset


MUTANT = Mutant(
    name="compaction-above-hw",
    property="log-start-bounded",
    summary="compaction does not stop at the high watermark",
    replacements=(
        Replacement(
            "nemesis.reference.log.log_cleaner_manager",
            "first_uncleanable_offset",
            _up_to_the_last_segment,
            is_comparable=True,
        ),
    ),
    scenario="log-compaction",
)
