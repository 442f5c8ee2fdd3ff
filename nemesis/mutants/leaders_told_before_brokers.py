"""A new controller tells brokers their leaders before it tells them who is alive.

A broker whose metadata are empty does not know the leader that it is to follow and follows nobody; the UpdateMetadata
that comes next mends its knowledge, but it is not told again whom to follow (KAFKA-4443, up to 0.10.1, mended in
0.10.2). As in Kafka, a broker asks its metadata alone whether a leader is alive.

Must be caught by: convergence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement


def _without_metadata(
    correct: Callable[[Any], Awaitable[None]],
) -> Callable[[Any], Awaitable[None]]:
    async def on_controller_failover(self: Any) -> None:
        batch = self.request_batch

        def skip_once(_broker_ids: Any, _partitions: Any) -> None:
            del batch.send_update_metadata  # the class's own is back

        batch.send_update_metadata = skip_once
        await correct(self)

    return on_controller_failover


def _known_by_metadata(_: Any) -> Callable[[Any, int, Any], Any]:
    def live_leader(self: Any, leader_id: int, live_leaders: Any) -> Any:
        alive = self._metadata_cache.alive_broker_node(leader_id, self._listener_name)
        return None if alive is None else live_leaders.get(leader_id, alive)

    return live_leader


MUTANT = Mutant(
    name="leaders-told-before-brokers",
    property="convergence",
    summary="after a failover LeaderAndIsr comes before any UpdateMetadata (KAFKA-4443)",
    replacements=(
        Replacement(
            "nemesis.reference.controller.controller_components",
            "ControllerComponents.on_controller_failover",
            _without_metadata,
        ),
        Replacement(
            "nemesis.reference.server.replica_roles",
            "ReplicaRoles._live_leader",
            _known_by_metadata,
        ),
    ),
)
