"""A broker wants to leave (ControlledShutdown): its partitions get other leaders before it goes, not after.

From then on it counts as shutting down: it is told of everything, but leads and joins nothing. What it leads is
elected for among the others of the ISR; what it follows it stops fetching, and it is taken out of those ISRs.
Partitions without another replica are not touched, and those without another live member of the ISR stay: they are the
answer, and the broker may ask again. Source: kafka.controller.KafkaController.doControlledShutdown; KIP-380 (epoch).
"""

from __future__ import annotations

import logging

from kio.schema.errors import ErrorCode

from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
    PartitionState,
    ReplicaState,
)
from nemesis.reference.controller.controller_events import ControlledShutdown
from nemesis.reference.controller.leader_elections import PartitionLeaderElectionStrategy
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH, TopicPartition
from nemesis.reference.trace import Kind, Tracer

_logger = logging.getLogger(__name__)


class ControlledShutdowns:
    """Runs in the event task."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        tracer: Tracer,
    ) -> None:
        self._context = context
        self._tracer = tracer
        self._request_batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine

    async def process(self, event: ControlledShutdown) -> None:
        """Move what can be moved, and answer with what the broker still leads."""
        context, broker_id = self._context, event.broker_id
        epoch = context.live_broker_epochs.get(broker_id)
        if epoch is None:
            self._answer(event, ErrorCode.broker_not_available, [])
            return
        if event.broker_epoch != UNKNOWN_BROKER_EPOCH and event.broker_epoch < epoch:
            self._answer(event, ErrorCode.stale_broker_epoch, [])
            return
        context.shutting_down_broker_ids.add(broker_id)
        _logger.info("shutting down: brokers %s", sorted(context.shutting_down_broker_ids))
        led, followed = self._partitions_of(broker_id)
        await self._partition_state_machine.handle_state_changes(
            led, PartitionState.ONLINE, PartitionLeaderElectionStrategy.CONTROLLED_SHUTDOWN
        )
        await self._stop_following(broker_id, followed)
        self._answer(event, ErrorCode.none, self._partitions_of(broker_id)[0])

    def _answer(
        self, event: ControlledShutdown, error: ErrorCode, remaining: list[TopicPartition]
    ) -> None:
        self._tracer.event(
            Kind.CONTROLLED_SHUTDOWN_HANDLED,
            controller_epoch=self._context.epoch,
            peer=event.broker_id,
            broker_epoch=event.broker_epoch,
            count=len(remaining),
            error=error.name.upper(),
        )
        event.answer((error, remaining))

    async def _stop_following(self, broker_id: int, partitions: list[TopicPartition]) -> None:
        """Let it stop fetching first: a fetch after the removal from the ISR would ask for it back."""
        self._request_batch.new_batch()
        for topic_partition in partitions:
            self._request_batch.add_stop_replica_request_for_brokers(
                [broker_id], topic_partition, delete_partition=False
            )
        self._request_batch.send_requests_to_brokers(self._context.epoch)
        await self._replica_state_machine.handle_state_changes(
            [PartitionAndReplica(topic_partition, broker_id) for topic_partition in partitions],
            ReplicaState.OFFLINE,
        )

    def _partitions_of(self, broker_id: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Those with more than one replica that the broker leads, and those that it follows."""
        context = self._context
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for replica in context.replicas_on_brokers([broker_id]):
            topic_partition = replica.topic_partition
            if (
                len(context.assignment(topic_partition).replicas) > 1
                and topic_partition in context.leadership
                and not context.is_topic_queued_up_for_deletion(topic_partition.topic)
            ):
                is_leader = context.leader(topic_partition) == broker_id
                (led if is_leader else followed).append(topic_partition)
        return led, followed
