"""What the state machines have to tell the brokers, collected per broker and sent once per round of state changes.

Three maps, one for each request. Starting a new batch while one of them is not empty is an error: those state changes
are in ZooKeeper and nobody was told. Sent in Kafka's order: LeaderAndIsr, UpdateMetadata, StopReplica. Each request
carries the controller epoch and the *receiver's* broker epoch, so that another incarnation refuses it.
Source: kafka.controller.AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from nemesis.reference.controller import control_requests
from nemesis.reference.controller.controller_channel_manager import (
    ControllerChannelManager,
    ControlRequest,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.errors import IllegalStateError
from nemesis.reference.model import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    PLAINTEXT,
    UNDEFINED_EPOCH,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.zk.zk_data import LeaderIsrAndControllerEpoch, ReplicaAssignment

ResponseReceived = Callable[[str, int, Any, Any], None]
"""Called with the API, the broker, the kio request and its kio response."""


class ControllerBrokerRequestBatch:
    def __init__(
        self,
        controller_id: int,
        context: ControllerContext,
        *,
        channel_manager: ControllerChannelManager,
        response_received: ResponseReceived,
        inter_broker_listener_name: str = PLAINTEXT,
    ) -> None:
        """``inter_broker_listener_name``: by which followers are told to fetch from their leaders."""
        self._inter_broker_listener_name = inter_broker_listener_name
        self._controller_id = controller_id
        self._context = context
        self._channel_manager = channel_manager
        self._response_received = response_received
        self._leader_and_isr: dict[int, dict[TopicPartition, LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, dict[TopicPartition, StopReplicaPartitionState]] = {}
        self._update_metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}
        self._update_metadata_brokers: set[int] = set()

    def new_batch(self) -> None:
        """Raises ``IllegalStateError`` when the previous batch was not sent."""
        unsent = {
            "LeaderAndIsr": self._leader_and_isr,
            "StopReplica": self._stop_replica,
            "UpdateMetadata": self._update_metadata or self._update_metadata_brokers,
        }
        for api, requests in unsent.items():
            if requests:
                raise IllegalStateError(f"the previous batch of {api} was not sent: {requests}")

    def clear(self) -> None:
        """Drop what was not sent; only for a controller that has resigned."""
        self._leader_and_isr.clear()
        self._stop_replica.clear()
        self._update_metadata.clear()
        self._update_metadata_brokers.clear()

    def add_leader_and_isr_request_for_brokers(
        self,
        broker_ids: Iterable[int],
        topic_partition: TopicPartition,
        state: LeaderIsrAndControllerEpoch,
        assignment: ReplicaAssignment,
        *,
        is_new: bool,
    ) -> None:
        """Tell these brokers the partition's state, and every live broker the metadata that follows from it."""
        partition_state = LeaderAndIsrPartitionState(
            topic_partition=topic_partition,
            topic_id=self._context.topic_id_of(topic_partition),
            controller_epoch=state.controller_epoch,
            leader_and_isr=state.leader_and_isr,
            replicas=assignment.replicas,
            adding_replicas=assignment.adding_replicas,
            removing_replicas=assignment.removing_replicas,
            is_new=is_new,
        )
        for broker_id in broker_ids:
            states = self._leader_and_isr.setdefault(broker_id, {})
            # A replica that is new stays new when the same batch tells it something else, too.
            was_new = topic_partition in states and states[topic_partition].is_new
            states[topic_partition] = replace(partition_state, is_new=is_new or was_new)
        self.add_update_metadata_request_for_brokers(
            self._context.live_or_shutting_down_broker_ids, [topic_partition]
        )

    def add_stop_replica_request_for_brokers(
        self, broker_ids: Iterable[int], topic_partition: TopicPartition, *, delete_partition: bool
    ) -> None:
        leader_epoch = self._stop_replica_epoch(topic_partition)
        for broker_id in broker_ids:
            states = self._stop_replica.setdefault(broker_id, {})
            was_delete = topic_partition in states and states[topic_partition].delete_partition
            states[topic_partition] = StopReplicaPartitionState(
                topic_partition, leader_epoch, delete_partition or was_delete
            )

    def add_update_metadata_request_for_brokers(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """No partitions: the brokers learn who is alive and who is the controller, nothing else."""
        self._update_metadata_brokers.update(broker_ids)
        for topic_partition in partitions:
            state = self._leadership_for_metadata(topic_partition)
            if state is None:
                continue
            leader_and_isr = state.leader_and_isr
            replicas = self._context.assignment(topic_partition).replicas
            self._update_metadata[topic_partition] = UpdateMetadataPartitionState(
                topic_partition=topic_partition,
                topic_id=self._context.topic_id_of(topic_partition),
                controller_epoch=state.controller_epoch,
                leader=leader_and_isr.leader,
                leader_epoch=leader_and_isr.leader_epoch,
                isr=leader_and_isr.isr,
                partition_epoch=leader_and_isr.partition_epoch,
                replicas=replicas,
                offline_replicas=tuple(
                    replica
                    for replica in replicas
                    if not self._context.is_replica_online(replica, topic_partition)
                ),
            )

    def _leadership_for_metadata(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None:
        """The partition's state, which is that of a deleted one from the moment when its topic is being deleted."""
        state = self._context.leadership.get(topic_partition)
        if not self._context.is_topic_being_deleted(topic_partition.topic):
            return state
        isr = () if state is None else state.leader_and_isr.isr
        # Also without a state (one that cannot be read): brokers may have a log of it.
        return LeaderIsrAndControllerEpoch(
            LeaderAndIsr(LEADER_DURING_DELETE, 0, isr), self._context.epoch
        )

    def _stop_replica_epoch(self, topic_partition: TopicPartition) -> int:
        if self._context.is_topic_being_deleted(topic_partition.topic):
            return EPOCH_DURING_DELETE
        known = self._context.leadership.get(topic_partition)
        return UNDEFINED_EPOCH if known is None else known.leader_and_isr.leader_epoch

    def send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """A batch of nothing but UpdateMetadata, sent at once."""
        self.new_batch()
        self.add_update_metadata_request_for_brokers(broker_ids, partitions)
        self.send_requests_to_brokers(self._context.epoch)

    def send_requests_to_brokers(self, controller_epoch: int) -> None:
        """Hand everything to the request-send tasks of live brokers, and be empty again."""
        brokers = [broker for _, broker in sorted(self._context.live_brokers.items())]
        nodes = [broker.node(self._inter_broker_listener_name) for broker in brokers]
        for broker_id, epoch in self._receivers(self._leader_and_isr):
            states = self._leader_and_isr[broker_id]
            leaders = {state.leader_and_isr.leader for state in states.values()}
            leader_and_isr = control_requests.leader_and_isr_request(
                self._controller_id,
                controller_epoch,
                epoch,
                states,
                [node for node in nodes if node is not None and node.id in leaders],
            )
            self._send("LeaderAndIsr", broker_id, leader_and_isr)
        topics = control_requests.update_metadata_topics(self._update_metadata)
        for broker_id, epoch in self._receivers(self._update_metadata_brokers):
            update_metadata = control_requests.update_metadata_request(
                self._controller_id, controller_epoch, epoch, topics, brokers
            )
            self._send("UpdateMetadata", broker_id, update_metadata)
        for broker_id, epoch in self._receivers(self._stop_replica):
            stop_replica = control_requests.stop_replica_request(
                self._controller_id, controller_epoch, epoch, self._stop_replica[broker_id]
            )
            self._send("StopReplica", broker_id, stop_replica)
        self.clear()

    def _receivers(self, broker_ids: Iterable[int]) -> list[tuple[int, int]]:
        """Those that are alive, in order, each with its broker epoch."""
        epochs = self._context.live_broker_epochs
        return [
            (broker_id, epochs[broker_id])
            for broker_id in sorted(broker_ids)
            if broker_id in epochs
        ]

    def _send(self, api: str, broker_id: int, request: Any) -> None:
        def answered(response: Any) -> None:
            self._response_received(api, broker_id, request, response)

        self._channel_manager.send_request(broker_id, ControlRequest(api, request, answered))
