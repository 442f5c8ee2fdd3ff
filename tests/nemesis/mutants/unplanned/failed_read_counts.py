"""A fetch that fails sets what the leader knows of the follower to -1 (KAFKA-8400)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.log.errors import OffsetOutOfRangeError


def wrong(correct: Any) -> Callable[..., Any]:
    def fetch_records(partition: Any, params: Any, request: Any, **options: Any) -> Any:
        try:
            return correct(partition, params, request, **options)
        except (ReplicaError, OffsetOutOfRangeError):
            replica = partition.remote_replicas.get(params.replica_id)
            if replica is not None and partition.is_leader and partition.log is not None:
                replica.update_fetch_state(
                    fetch_offset=-1,
                    log_start_offset=-1,
                    leader_end_offset=partition.log.log_end_offset,
                    now=asyncio.get_running_loop().time(),
                    broker_epoch=params.replica_epoch,
                )
            raise

    return fetch_records


MUTANT = Mutant(
    name="failed-read-counts",
    property="late-recovery",
    summary="a fetch that fails sets what the leader knows of the follower to -1 (KAFKA-8400)",
    replacements=(
        Replacement(
            "nemesis.reference.server.record_fetches",
            "fetch_records",
            wrong,
        ),
    ),
    scenario="partition-controller",
)
