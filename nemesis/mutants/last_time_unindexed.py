"""The time index of a segment lacks the largest time of its last records.

Entries are added with those of the offset index, and once more when the segment is rolled or closed. Without that one
the index ends early: a broker that starts takes its last time for the largest of the segment, and searches by time, and
retention by age, overlook the records behind it.

Must be caught by: log-files-agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.log.log_segment import INDEX_SUFFIXES


def _as_it_is(_correct: Any) -> Callable[..., None]:
    def write_indexes(self: Any) -> None:
        indexes = (self._offset_index.to_bytes(), self._time_index.to_bytes())
        for suffix, data in zip(INDEX_SUFFIXES, indexes, strict=True):
            self._atomic.replace(self._path_stem + suffix, data)

    return write_indexes


MUTANT = Mutant(
    name="last-time-unindexed",
    property="log-files-agree",
    summary="a segment that is rolled lacks the largest time of its last records in its time index",
    replacements=(
        Replacement("nemesis.reference.log.log_segment", "LogSegment.write_indexes", _as_it_is),
    ),
    scenario="log-maintenance",
)
