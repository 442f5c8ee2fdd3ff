"""min.insync.replicas is compared after the append, and the answer is NOT_ENOUGH_REPLICAS all the same.

That error says that nothing was written, so the client gives the record up; it is in the log, and is read once the ISR
has grown again. Kafka has two errors for this reason, the other is NOT_ENOUGH_REPLICAS_AFTER_APPEND (KAFKA-1555).

Must be caught by: dirty-read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.cluster.errors import ReplicaError

LEADER_ONLY = 1
ALL_REPLICAS = -1


def _append_first(correct: Any) -> Callable[..., Any]:
    def append_as_leader(partition: Any, records: bytes, acks: int, *origin: Any) -> Any:
        appended = correct(partition, records, LEADER_ONLY, *origin)
        if acks == ALL_REPLICAS and len(partition.state.isr) < partition.effective_min_isr:
            raise ReplicaError(ErrorCode.not_enough_replicas, "too few replicas are in sync")
        return appended

    return append_as_leader


MUTANT = Mutant(
    name="refused-append-kept",
    property="dirty-read",
    summary="what is refused for want of in-sync replicas has been appended (KAFKA-1555)",
    replacements=(
        Replacement(
            "nemesis.reference.cluster.partition", "Partition.append_as_leader", _append_first
        ),
    ),
)
