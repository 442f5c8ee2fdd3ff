"""Retention deletes what is old or too much, whether or not it is committed.

A log may then begin above its high watermark. A follower deletes records that its leader has not committed, and fetches
from an offset that the leader refuses; a leader deletes records that its followers still have to copy. Since KAFKA-5634
UnifiedLog.deleteOldSegments leaves each segment that reaches beyond the high watermark.

Must be caught by: log-start-bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


@dataclass(frozen=True)
class _AllCommitted:
    """A log as retention sees it, with a high watermark at its end."""

    log: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    @property
    def high_watermark(self) -> Any:
        return self.log.log_end_offset


def _up_to_the_end(correct: Callable[..., int]) -> Callable[..., int]:
    def deletable_segments(log: Any, *, now_ms: int) -> int:
        return correct(_AllCommitted(log), now_ms=now_ms)

    return deletable_segments


def _wherever_the_high_watermark_is(correct: Callable[..., bool]) -> Callable[..., bool]:
    def maybe_increment_log_start_offset(log: Any, offset: int, reason: Any) -> bool:
        if reason.value != "segment-deletion" or offset <= log.high_watermark:
            return correct(log, offset, reason)
        log.log_start_offset = offset
        log._on_start_moved(log, reason)  # noqa: SLF001
        log.leader_epoch_cache.truncate_from_start(offset)
        return True

    return maybe_increment_log_start_offset


MUTANT = Mutant(
    name="retention-above-hw",
    property="log-start-bounded",
    summary="retention deletes segments that reach beyond the high watermark (KAFKA-5634)",
    replacements=(
        Replacement(
            "nemesis.reference.log.log",
            "deletable_segments",
            _up_to_the_end,
            is_comparable=True,
        ),
        Replacement(
            "nemesis.reference.log.log",
            "Log.maybe_increment_log_start_offset",
            _wherever_the_high_watermark_is,
        ),
    ),
    scenario="log-maintenance",
)
