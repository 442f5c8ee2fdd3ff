"""A controller takes only the first replica offline that a broker has lost with a log directory.

The broker answers KAFKA_STORAGE_ERROR for each replica of the failed directory in one answer. All others stay in the
ISR or go on leading: nothing can be written to what they lead, as if KIP-112 did not exist.

Must be caught by: log-dir-failures-handled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.controller_events import ReplicasFailed


def _with_one_partition(correct: Callable[..., Any]) -> Callable[..., Any]:
    def event_of(*arguments: Any) -> Any:
        event = correct(*arguments)
        if isinstance(event, ReplicasFailed):
            return replace(event, partitions=event.partitions[:1])
        return event

    return event_of


MUTANT = Mutant(
    name="first-lost-replica-alone",
    property="log-dir-failures-handled",
    summary="of the replicas that a broker lost with a log directory, the controller takes the first offline (KIP-112)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.response_events",
            "event_of",
            _with_one_partition,
            is_comparable=True,
        ),
    ),
    scenario="disk-faults",
)
