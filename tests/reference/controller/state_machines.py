"""Both state machines of a controller, with the requests they would send."""

from __future__ import annotations

from typing import Any

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
)
from nemesis.reference.controller.controller_channel_manager import ControlRequest
from nemesis.reference.controller.controller_context import (
    ControllerContext,
    PartitionAndReplica,
)
from nemesis.reference.controller.partition_state_machine import PartitionStateMachine
from nemesis.reference.controller.replica_state_machine import ReplicaStateMachine
from nemesis.reference.model import Broker, TopicPartition
from nemesis.reference.trace import Kind
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import (
    ReplicaAssignment,
    TopicAssignment,
)
from tests.reference.controller.cluster import TOPIC_ID, ListTracer

TP = TopicPartition("t", 0)


REPLICA = PartitionAndReplica(TP, 1)


class Channels:
    def __init__(self) -> None:
        self.sent: list[tuple[int, ControlRequest]] = []

    def send_request(self, broker_id: int, request: ControlRequest) -> None:
        self.sent.append((broker_id, request))


class Machines:
    """Both state machines over a context without leadership: no transition then needs ZooKeeper."""

    def __init__(self) -> None:
        self.tracer = ListTracer()
        self.channels = Channels()
        self.context = ControllerContext()
        self.context.fence = ControllerFence(3, 3)
        self.context.set_live_brokers({Broker.at(b, "h", b): 100 + b for b in (1, 2)})
        self.context.add_topic(TopicAssignment("t", TOPIC_ID, {0: ReplicaAssignment((1, 2))}))
        self.batch = ControllerBrokerRequestBatch(
            1,
            self.context,
            channel_manager=self.channels,  # type: ignore[arg-type]
            response_received=lambda *_: None,
        )
        self.zk_client = unused = KafkaZkClient(
            KazooZooKeeperClient("", 1000, None), tracer=self.tracer
        )
        self.partitions = PartitionStateMachine(
            self.context,
            zk_client=unused,
            request_batch=self.batch,
            tracer=self.tracer,
            unclean_leader_election_enable=lambda: False,
            is_leader_recovery_supported=True,
        )
        self.replicas = ReplicaStateMachine(
            self.context, zk_client=unused, request_batch=self.batch, tracer=self.tracer
        )

    def transition(self) -> dict[str, Any]:
        (event,) = self.tracer.of(Kind.TRANSITION)
        return event
