"""A log takes any high watermark, also one behind its own end.

UnifiedLog.updateHighWatermark bounds it: by the end of the log that is opened, whose tail may have been cut since the
checkpoint, and by that of a follower, which may lag behind its leader's high watermark.

Must be caught by: hw-within-log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _as_it_is(_correct: Any) -> Callable[[Any, int], int]:
    return lambda _log, offset: offset


MUTANT = Mutant(
    name="hw-unbounded",
    property="hw-within-log",
    summary="a high watermark is not bounded by the end of the replica's own log",
    replacements=(
        Replacement("nemesis.reference.log.log", "Log._clamped", _as_it_is, is_comparable=True),
    ),
    scenario="disk-faults",
)
