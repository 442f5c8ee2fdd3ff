"""Brokers that come, go or bounce, replicas whose disk failed: what the controller does then.

A broker that is listed under a larger epoch than before has bounced: it is failed and started, even though nobody saw
it missing (KIP-380). Source: kafka.controller.KafkaController (processBrokerChange, onBrokerStartup, onBrokerFailure,
onReplicasBecomeOffline).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from nemesis.reference.controller.broker_modifications import BrokerModificationHandlers
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_channel_manager import ControllerChannelManager
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.controller_events import ReplicasFailed
from nemesis.reference.controller.partition_reassignments import PartitionReassignments
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.controller.topic_deletion_manager import TopicDeletionManager
from nemesis.reference.model import Broker
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


def broker_changes(
    live: Mapping[int, int], current: Mapping[int, int]
) -> tuple[list[int], list[int], list[int]]:
    """Return who is new, dead or bounced, given the broker epochs that were known and those that are there now."""
    return (
        [broker for broker in current if broker not in live],
        [broker for broker in live if broker not in current],
        [broker for broker, epoch in current.items() if broker in live and epoch > live[broker]],
    )


class ClusterChanges:
    """Compares ZooKeeper with what the controller knows, and moves the state machines. Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        zk_client: KafkaZkClient,
        channel_manager: ControllerChannelManager,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        reassignments: PartitionReassignments,
        topic_deletion_manager: TopicDeletionManager,
        broker_modifications: BrokerModificationHandlers,
        tracer: Tracer,
    ) -> None:
        self._context = context
        self._tracer = tracer
        self._zk_client = zk_client
        self._channel_manager = channel_manager
        self._request_batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._reassignments = reassignments
        self._topic_deletion_manager = topic_deletion_manager
        self._broker_modifications = broker_modifications

    async def process_broker_change(self) -> None:
        context = self._context
        current = await self._zk_client.brokers.get_all_brokers_and_epochs()
        brokers = {broker.id: broker for broker in current}
        epochs = {broker.id: epoch for broker, epoch in current.items()}
        new, dead, bounced = broker_changes(context.live_broker_epochs, epochs)
        _logger.info("brokers: new %s, dead %s, bounced %s", new, dead, bounced)
        for broker_id in (*bounced, *dead):
            self._channel_manager.remove_broker(broker_id)
        for broker_id in (*new, *bounced):
            self._channel_manager.add_broker(brokers[broker_id])

        def alive(broker_ids: Iterable[int]) -> dict[Broker, int]:
            return {brokers[broker_id]: epochs[broker_id] for broker_id in broker_ids}

        if new:
            context.add_live_brokers(alive(new))
            await self._on_broker_startup(new)
        if bounced:
            context.remove_live_brokers(bounced)
            await self._on_broker_failure(bounced)
            context.add_live_brokers(alive(bounced))
            await self._on_broker_startup(bounced)
        if dead:
            context.remove_live_brokers(dead)
            await self._on_broker_failure(dead)
        self._tracer.event(
            Kind.BROKER_CHANGE_HANDLED, controller_epoch=context.epoch, live=sorted(epochs)
        )

    async def _on_broker_startup(self, broker_ids: Sequence[int]) -> None:
        context = self._context
        for broker_id in broker_ids:
            context.replicas_on_offline_dirs.pop(broker_id, None)
        await self._broker_modifications.register(broker_ids)
        others = [b for b in context.live_or_shutting_down_broker_ids if b not in broker_ids]
        self._request_batch.send_update_metadata(others, ())
        self._request_batch.send_update_metadata(broker_ids, context.partitions_with_leaders())
        replicas = context.replicas_on_brokers(broker_ids)
        # What the broker has deleted before it died is not wanted any more.
        wanted = [r for r in replicas if not context.is_replica_deleted(r)]
        await self._replica_state_machine.handle_state_changes(wanted, ReplicaState.ONLINE)
        await self._partition_state_machine.trigger_online_partition_state_change()
        await self._reassignments.resume_for_brokers(broker_ids)
        await self._topic_deletion_manager.resume_deletion_for_topics(
            dict.fromkeys(replica.topic_partition.topic for replica in replicas)
        )

    async def _on_broker_failure(self, broker_ids: Sequence[int]) -> None:
        for broker_id in broker_ids:
            self._context.replicas_on_offline_dirs.pop(broker_id, None)
            self._context.shutting_down_broker_ids.discard(broker_id)
        self._broker_modifications.unregister(broker_ids)
        await self._on_replicas_become_offline(self._context.replicas_on_brokers(broker_ids))

    async def _on_replicas_become_offline(self, replicas: Sequence[PartitionAndReplica]) -> None:
        leaderless = self._context.partitions_with_offline_leader()
        await self._partition_state_machine.handle_state_changes(leaderless, PartitionState.OFFLINE)
        await self._partition_state_machine.trigger_online_partition_state_change()
        being_deleted = [r for r in replicas if self._is_being_deleted(r)]
        others = [r for r in replicas if not self._is_being_deleted(r)]
        await self._replica_state_machine.handle_state_changes(others, ReplicaState.OFFLINE)
        await self._topic_deletion_manager.fail_replica_deletion(being_deleted)
        if not leaderless:
            # Nobody was told anything yet, and everybody must learn that the broker is gone.
            self._request_batch.send_update_metadata(
                self._context.live_or_shutting_down_broker_ids, ()
            )

    async def process_replicas_failed(self, event: ReplicasFailed) -> None:
        offline = self._context.replicas_on_offline_dirs.setdefault(event.broker_id, set())
        offline.update(event.partitions)
        await self._on_replicas_become_offline(
            [PartitionAndReplica(tp, event.broker_id) for tp in event.partitions]
        )

    def _is_being_deleted(self, replica: PartitionAndReplica) -> bool:
        return self._context.is_topic_being_deleted(replica.topic_partition.topic)
