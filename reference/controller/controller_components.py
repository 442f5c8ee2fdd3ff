"""What a controller consists of, and how its parts hang together.

One class per component of Kafka's controller; each gets the context, the ZooKeeper client, the request batch and the
state machines that it moves. They are made once and live as long as the broker: what belongs to a term of office is in
the context, which is emptied at resignation.
"""

from __future__ import annotations

from collections.abc import Callable

from reference.controller.cluster_changes import ClusterChanges
from reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    ResponseReceived,
)
from reference.controller.controller_channel_manager import Connection, ControllerChannelManager
from reference.controller.controller_context import ControllerContext
from reference.controller.isr_changes import IsrChanges
from reference.controller.partition_state_machine import PartitionStateMachine
from reference.controller.replica_state_machine import ReplicaStateMachine
from reference.kafka_config import KafkaConfig
from reference.trace import Tracer
from reference.zk.kafka_zk_client import KafkaZkClient


class ControllerComponents:
    """See the module. Only the task of the event queue uses them."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        zk_client: KafkaZkClient,
        tracer: Tracer,
        connection_factory: Callable[[], Connection],
        response_received: ResponseReceived,
    ) -> None:
        self.context = ControllerContext()
        self.channel_manager = ControllerChannelManager(
            config.broker_id,
            connection_factory=connection_factory,
            tracer=tracer,
            timeout_s=config.controller_socket_timeout_ms / 1000,
            retry_backoff_s=config.controller_retry_backoff_ms / 1000,
        )
        self.request_batch = ControllerBrokerRequestBatch(
            config.broker_id,
            self.context,
            channel_manager=self.channel_manager,
            response_received=response_received,
        )
        self.partition_state_machine = PartitionStateMachine(
            self.context,
            zk_client=zk_client,
            request_batch=self.request_batch,
            tracer=tracer,
            unclean_leader_election_enable=config.unclean_leader_election_enable,
        )
        self.replica_state_machine = ReplicaStateMachine(
            self.context, zk_client=zk_client, request_batch=self.request_batch, tracer=tracer
        )
        self.cluster_changes = ClusterChanges(
            self.context,
            zk_client=zk_client,
            channel_manager=self.channel_manager,
            request_batch=self.request_batch,
            partition_state_machine=self.partition_state_machine,
            replica_state_machine=self.replica_state_machine,
        )
        self.isr_changes = IsrChanges(
            self.context, zk_client=zk_client, request_batch=self.request_batch
        )
