"""A replica goes over to its new log directory before everything has been copied.

What had not been copied yet is gone, committed or not; a leader appends other records in its place.
kafka.cluster.Partition.maybeReplaceCurrentWithFutureReplica compares both logs' ends under the lock that appends take
(KIP-113).

Must be caught by: no-truncation-below-hw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _anything(_correct: Any) -> Callable[..., bool]:
    return lambda *_arguments: True


MUTANT = Mutant(
    name="future-log-swapped-early",
    property="no-truncation-below-hw",
    summary="a replica that moves to another log directory goes over before its log is copied",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.local_replica",
            "has_caught_up",
            _anything,
            is_comparable=True,
        ),
    ),
    scenario="log-dirs",
)
