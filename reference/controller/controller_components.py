"""What a controller is made of while it holds the office, how a term begins (failover) and how it ends (resignation).

The parts share one context, one request batch and the two state machines, and run in the event task alone. Those that
watch znodes register for themselves what they watch; the failover then reads everything, in Kafka's order.
Source: kafka.controller.KafkaController (onControllerFailover, onControllerResignation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from nemesis.reference.controller import response_events
from nemesis.reference.controller.auto_leader_rebalance import AutoLeaderRebalance
from nemesis.reference.controller.broker_modifications import BrokerModificationHandlers
from nemesis.reference.controller.cluster_changes import ClusterChanges
from nemesis.reference.controller.controlled_shutdowns import ControlledShutdowns
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_channel_manager import (
    Connection,
    ControllerChannelManager,
)
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_event_manager import ControllerEvent
from nemesis.reference.controller.controller_events import (
    AllocateProducerIds,
    AlterPartitionReceived,
    ApiPartitionReassignment,
    AutoPreferredReplicaLeaderElection,
    BrokerChange,
    BrokerModifications,
    ControlledShutdown,
    Event,
    IsrChangeNotification,
    ListPartitionReassignments,
    LogDirEventNotification,
    NewerControllerNoticed,
    PartitionModifications,
    PartitionReassignmentIsrChange,
    ReplicaLeaderElection,
    ReplicasFailed,
    TopicChange,
    TopicDeletion,
    TopicDeletionStopReplicaResponseReceived,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
    ZkPartitionReassignment,
    ZkPreferredReplicaElection,
)
from nemesis.reference.controller.isr_change_notifications import IsrChangeNotificationHandler
from nemesis.reference.controller.isr_changes import IsrChanges
from nemesis.reference.controller.log_dir_failures import LogDirFailures
from nemesis.reference.controller.partition_reassignments import PartitionReassignments
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.producer_id_allocations import ProducerIdAllocations
from nemesis.reference.controller.reassignment_phases import ReassignmentPhases
from nemesis.reference.controller.replica_leader_elections import ReplicaLeaderElections
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.controller.topic_changes import TopicChanges
from nemesis.reference.controller.topic_deletion_manager import TopicDeletionManager
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.trace import Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

Put = Callable[[Event], None]
"""Puts an event into the controller's queue."""


class ControllerComponents:
    """See the module."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        zk_client: KafkaZkClient,
        tracer: Tracer,
        connection_factory: Callable[[], Connection],
        unclean_leader_election_enable: Callable[[], bool],
        new_topic_id: Callable[[], UUID],
        put: Put,
    ) -> None:
        self.context = ControllerContext()
        self._zk_client = zk_client
        self._put = put
        self.channel_manager = ControllerChannelManager(
            config.broker_id,
            connection_factory=connection_factory,
            tracer=tracer,
            timeout_s=config.controller_socket_timeout_ms / 1000,
            retry_backoff_s=config.controller_retry_backoff_ms / 1000,
            listener_name=config.listener_config.to_controller_listener_name,
        )
        self.request_batch = ControllerBrokerRequestBatch(
            config.broker_id,
            self.context,
            channel_manager=self.channel_manager,
            inter_broker_listener_name=config.listener_config.inter_broker_listener_name,
            response_received=self._response_received,
        )
        self.partition_state_machine = PartitionStateMachine(
            self.context,
            zk_client=zk_client,
            request_batch=self.request_batch,
            tracer=tracer,
            unclean_leader_election_enable=unclean_leader_election_enable,
            is_leader_recovery_supported=config.is_leader_recovery_supported,
        )
        self.replica_state_machine = ReplicaStateMachine(
            self.context, zk_client=zk_client, request_batch=self.request_batch, tracer=tracer
        )
        self.topic_deletion_manager = TopicDeletionManager(
            self.context,
            zk_client=zk_client,
            request_batch=self.request_batch,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
            delete_topic_enable=config.delete_topic_enable,
        )
        self._reassignments = PartitionReassignments(
            self.context,
            zk_client=zk_client,
            phases=ReassignmentPhases(
                self.context,
                zk_client=zk_client,
                request_batch=self.request_batch,
                partition_state_machine=self.partition_state_machine,
                replica_state_machine=self.replica_state_machine,
                topic_deletion_manager=self.topic_deletion_manager,
                tracer=tracer,
                put=put,
            ),
            put=put,
        )
        self._topic_changes = TopicChanges(
            self.context,
            zk_client=zk_client,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
            topic_deletion_manager=self.topic_deletion_manager,
            new_topic_id=new_topic_id,
            put=put,
        )
        self._broker_modifications = BrokerModificationHandlers(
            self.context, zk_client=zk_client, request_batch=self.request_batch, put=put
        )
        self._log_dir_failures = LogDirFailures(
            self.context,
            zk_client=zk_client,
            replica_state_machine=self.replica_state_machine,
            put=put,
        )
        self._isr_change_notifications = IsrChangeNotificationHandler(
            self.context,
            zk_client=zk_client,
            request_batch=self.request_batch,
            put=put,
        )
        self._cluster_changes = ClusterChanges(
            self.context,
            zk_client=zk_client,
            channel_manager=self.channel_manager,
            request_batch=self.request_batch,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
            reassignments=self._reassignments,
            topic_deletion_manager=self.topic_deletion_manager,
            broker_modifications=self._broker_modifications,
            tracer=tracer,
        )
        self._isr_changes = IsrChanges(
            self.context, zk_client=zk_client, request_batch=self.request_batch, tracer=tracer
        )
        self._replica_leader_elections = ReplicaLeaderElections(
            self.context,
            zk_client=zk_client,
            partition_state_machine=self.partition_state_machine,
            tracer=tracer,
            put=put,
        )
        self._auto_leader_rebalance = AutoLeaderRebalance(
            config,
            self.context,
            elections=self._replica_leader_elections,
            scheduler=KafkaScheduler(),
            tracer=tracer,
            put=put,
        )
        self._producer_id_allocations = ProducerIdAllocations(self.context, zk_client.producer_ids)
        self._controlled_shutdowns = ControlledShutdowns(
            self.context,
            request_batch=self.request_batch,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
            tracer=tracer,
        )

    async def process(self, event: ControllerEvent) -> None:
        """Process an event of the present term; one of an earlier term, or of none of the kinds here, is dropped."""
        match event:
            case BrokerChange():
                await self._cluster_changes.process_broker_change()
            case BrokerModifications():
                await self._broker_modifications.process(event)
            case IsrChangeNotification():
                await self._isr_change_notifications.process()
            case LogDirEventNotification():
                await self._log_dir_failures.process()
            case TopicChange():
                await self._topic_changes.process_topic_change()
            case PartitionModifications(topic):
                await self._topic_changes.process_partition_modifications(topic)
            case TopicDeletion():
                await self._topic_changes.process_topic_deletion()
            case TopicDeletionStopReplicaResponseReceived() if self._is_of_now(
                event, event.replica_id
            ):
                await self._topic_changes.process_stop_replica_response(event)
            case ReplicasFailed() if self._is_of_now(event, event.broker_id):
                await self._cluster_changes.process_replicas_failed(event)
            case AlterPartitionReceived():
                if await self._isr_changes.process(event):
                    reason = "an AlterPartition with newer epochs"
                    self._put(NewerControllerNoticed(self.context.epoch, reason))
            case _:
                await self._process_request(event)

    async def _process_request(self, event: ControllerEvent) -> None:
        """What operators, brokers or the clock ask for: other replicas, other leaders."""
        match event:
            case ZkPartitionReassignment():
                await self._reassignments.process_zk_reassignment()
            case ApiPartitionReassignment():
                await self._reassignments.process_api_reassignment(event)
            case PartitionReassignmentIsrChange(topic_partition):
                await self._reassignments.process_isr_change(topic_partition)
            case ListPartitionReassignments():
                self._reassignments.process_list(event)
            case AllocateProducerIds():
                await self._producer_id_allocations.process(event)
            case ControlledShutdown():
                await self._controlled_shutdowns.process(event)
            case ReplicaLeaderElection():
                await self._replica_leader_elections.process(event)
            case ZkPreferredReplicaElection():
                await self._replica_leader_elections.process_znode()
            case AutoPreferredReplicaLeaderElection():
                await self._auto_leader_rebalance.process()
            case UncleanLeaderElectionEnable():
                await self.partition_state_machine.trigger_online_partition_state_change()
            case TopicUncleanLeaderElectionEnable(topic):
                await self.partition_state_machine.trigger_online_partition_state_change(topic)

    async def on_controller_failover(self) -> None:
        """Begin a term: ``context.fence`` is set. UpdateMetadata goes before the state machines (KAFKA-4443)."""
        await self._zk_client.feature.enable_feature_versioning()
        self._register_handlers()
        await self._log_dir_failures.startup()
        await self._isr_change_notifications.startup()
        await self._initialize_controller_context()
        await self.topic_deletion_manager.init()
        self.request_batch.send_update_metadata(self.context.live_or_shutting_down_broker_ids, ())
        await self.replica_state_machine.startup()
        await self.partition_state_machine.startup()
        await self._reassignments.initialize()
        await self.topic_deletion_manager.try_topic_deletion()
        await self._replica_leader_elections.process_znode()
        self._auto_leader_rebalance.startup()

    async def on_controller_resignation(self) -> None:
        """End the term: nothing is sent or written in it any more. Harmless without one."""
        await self._auto_leader_rebalance.shutdown()
        self._unregister_handlers()
        self.context.reset()
        self.request_batch.clear()
        await self.channel_manager.shutdown()

    def _register_handlers(self) -> None:
        session = self._zk_client.session
        session.register_znode_child_change_handler(
            zk_data.BROKER_IDS, lambda: self._put(BrokerChange())
        )
        session.register_znode_child_change_handler(
            zk_data.TOPICS, lambda: self._put(TopicChange())
        )
        self._log_dir_failures.register_handlers()
        self._isr_change_notifications.register_handlers()
        self._reassignments.watch()
        session.register_znode_child_change_handler(
            zk_data.DELETE_TOPICS, lambda: self._put(TopicDeletion())
        )
        self._replica_leader_elections.register_handlers()

    def _unregister_handlers(self) -> None:
        self._topic_changes.unregister_partition_modifications_handlers()
        for path in (zk_data.BROKER_IDS, zk_data.TOPICS, zk_data.DELETE_TOPICS):
            self._zk_client.session.unregister_znode_child_change_handler(path)
        self._log_dir_failures.unregister_handlers()
        self._isr_change_notifications.unregister_handlers()
        self._broker_modifications.unregister_all()
        self._reassignments.unwatch()
        self._replica_leader_elections.unregister_handlers()

    async def _initialize_controller_context(self) -> None:
        context = self.context
        context.set_live_brokers(await self._zk_client.brokers.get_all_brokers_and_epochs())
        await self._topic_changes.initialize()
        context.leadership = await self._zk_client.states.get_topic_partition_states(
            list(context.assignments)
        )
        await self._broker_modifications.register(context.live_or_shutting_down_broker_ids)
        self.channel_manager.startup(context.live_brokers.values())

    def _is_of_now(
        self, event: ReplicasFailed | TopicDeletionStopReplicaResponseReceived, broker_id: int
    ) -> bool:
        """Whether the broker's answer is one of its present life, to a request of this term."""
        live = self.context.live_broker_epochs.get(broker_id)
        return (event.controller_epoch, event.broker_epoch) == (self.context.epoch, live)

    def _response_received(self, api: str, broker_id: int, request: Any, response: Any) -> None:
        """On the request-send task: only look, and queue an event."""
        event = response_events.event_of(self.context, api, broker_id, request, response)
        if event is not None:
            self._put(event)
