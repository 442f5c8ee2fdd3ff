"""Compaction removes tombstones without waiting for delete.retention.ms (KAFKA-4529)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def wrong(correct: Any) -> Callable[[Any, Any, int | None], bool]:
    def stays(self: Any, record: Any, horizon_ms: int | None) -> bool:
        if record.offset <= self._offset_map.latest_offset and not record.has_value:
            return False
        return bool(correct(self, record, horizon_ms))

    return stays


MUTANT = Mutant(
    name="tombstones-removed-early",
    property="tombstones-kept",
    summary="compaction removes tombstones without waiting for delete.retention.ms (KAFKA-4529)",
    replacements=(
        Replacement(
            "nemesis.reference.log.record_filter",
            "RecordFilter._stays",
            wrong,
            is_comparable=True,
        ),
    ),
    scenario="log-compaction",
)
