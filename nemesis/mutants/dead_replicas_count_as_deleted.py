"""The deletion of a topic does not wait for brokers that are down: their replicas count as deleted.

When such a broker is back, nobody tells it, and it keeps the log of a topic that is no more. In Kafka such replicas are
ineligible for deletion, and the topic stays until their broker has deleted them (TopicDeletionManager).

Must be caught by: deletion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nemesis.mutants.base import Mutant, Replacement
from nemesis.reference.controller.controller_context import ReplicaState


def _not_waiting(correct: Any) -> Callable[..., Any]:
    async def on_partition_deletion(self: Any, topics: Any) -> None:
        replicas = [r for topic in topics for r in self._context.replicas_for_topic(topic)]
        await _count_as_deleted(self, [r for r in replicas if not self._is_online(r)])
        await correct(self, topics)

    return on_partition_deletion


def _dead_meanwhile(correct: Any) -> Callable[..., Any]:
    async def fail_replica_deletion(self: Any, replicas: Any) -> None:
        dead = [r for r in self._queued(replicas) if not self._is_online(r)]
        await _count_as_deleted(self, dead)
        await correct(self, replicas)

    return fail_replica_deletion


async def _count_as_deleted(self: Any, dead: list[Any]) -> None:
    machine = self._replica_state_machine
    for state, before in (
        (ReplicaState.OFFLINE, (ReplicaState.NEW, ReplicaState.ONLINE)),
        (ReplicaState.DELETION_STARTED, (ReplicaState.OFFLINE,)),
        (ReplicaState.DELETION_SUCCESSFUL, (ReplicaState.DELETION_STARTED,)),
    ):
        await machine.handle_state_changes([r for r in dead if self._is_in(r, *before)], state)


MUTANT = Mutant(
    name="dead-replicas-count-as-deleted",
    property="deletion",
    summary="the deletion of a topic does not wait for brokers that are down",
    replacements=(
        Replacement(
            "nemesis.reference.controller.topic_deletion_manager",
            "TopicDeletionManager._on_partition_deletion",
            _not_waiting,
        ),
        Replacement(
            "nemesis.reference.controller.topic_deletion_manager",
            "TopicDeletionManager.fail_replica_deletion",
            _dead_meanwhile,
        ),
    ),
    scenario="topics",
)
