"""Controllers on a real ZooKeeper whose brokers are recorded connections: what they are told, and what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.leader_and_isr.v7.response import LeaderAndIsrResponse
from kio.schema.stop_replica.v4.response import StopReplicaPartitionError, StopReplicaResponse
from kio.schema.update_metadata.v8.response import UpdateMetadataResponse

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import Broker, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.trace import Kind
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient
from nemesis.reference.zk.zk_data import (
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
    TopicAssignment,
)

SESSION_TIMEOUT_MS = 10_000
TOPIC_ID = UUID(int=7)
NEW_TOPIC_ID = UUID(int=77)
"""What a controller gives to a topic that has none."""


def config(broker_id: int, **properties: object) -> KafkaConfig:
    return KafkaConfig.from_properties(
        {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://127.0.0.1:{9000 + broker_id}",
            "zookeeper.connect": "unused",
            "log.dirs": ("unused",),
            "controller.retry.backoff.ms": 1,
            **properties,
        }
    )


class ListTracer:
    """Keeps events as (kind, columns)."""

    def __init__(self) -> None:
        self.events: list[tuple[Kind, dict[str, Any]]] = []

    def event(self, kind: Kind, /, **columns: Any) -> None:
        self.events.append((kind, {k: v for k, v in columns.items() if v is not None}))

    def of(self, kind: Kind) -> list[dict[str, Any]]:
        return [columns for event_kind, columns in self.events if event_kind is kind]


class Wire:
    """All connections of a controller: remembers (port, request), answers NONE unless told otherwise."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.answer: Callable[[int, Any], Any] = lambda port, request: None
        """Return a response, an exception to be raised, or None for the usual answer."""

    def connection(self) -> WireConnection:
        return WireConnection(self)

    def to(self, broker_id: int, name: str) -> list[Any]:
        return [
            request
            for port, request in self.sent
            if port == 9000 + broker_id and type(request).__name__ == f"{name}Request"
        ]


class WireConnection:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        await asyncio.sleep(0)
        self._wire.sent.append((port, request))
        answer = self._wire.answer(port, request)
        if isinstance(answer, NetworkError):
            raise answer
        return answer or ok(request)

    async def close(self) -> None:
        pass


def ok(request: Any, error: ErrorCode = ErrorCode.none) -> Any:
    match type(request).__name__:
        case "LeaderAndIsrRequest":
            return LeaderAndIsrResponse(error_code=error, topics=())
        case "UpdateMetadataRequest":
            return UpdateMetadataResponse(error_code=error)
        case _:
            return stopped(request, error)


def stopped(
    request: Any, error: ErrorCode = ErrorCode.none, partition_error: ErrorCode = ErrorCode.none
) -> Any:
    """The answer to a StopReplica: the same for each of its partitions."""
    partitions = tuple(
        StopReplicaPartitionError(
            topic_name=topic.topic_name,
            partition_index=partition.partition_index,
            error_code=partition_error,
        )
        for topic in request.topic_states
        for partition in topic.partition_states
    )
    return StopReplicaResponse(error_code=error, partition_errors=partitions)


class Node:
    """One broker's controller candidate with its own session."""

    def __init__(self, address: str, broker_id: int, **properties: object) -> None:
        self.tracer = ListTracer()
        self.wire = Wire()
        self.zookeeper = KazooZooKeeperClient(address, SESSION_TIMEOUT_MS, None)
        self.zk_client = KafkaZkClient(self.zookeeper, tracer=self.tracer)
        self.controller = KafkaController(
            config(broker_id, **properties),
            zk_client=self.zk_client,
            tracer=self.tracer,
            broker=Broker.at(broker_id, "127.0.0.1", 9000 + broker_id),
            connection_factory=self.wire.connection,
            wall_clock=lambda: 0,
            new_topic_id=lambda: NEW_TOPIC_ID,
        )

    async def start(self) -> Node:
        await self.zookeeper.start()
        await self.controller.startup()
        return self

    async def stop(self) -> None:
        await self.controller.shutdown()
        await self.zookeeper.close()

    async def state(self, topic: str, partition: int) -> LeaderIsrAndControllerEpoch:
        topic_partition = TopicPartition(topic, partition)
        states = await self.zk_client.states.get_topic_partition_states([topic_partition])
        return states[topic_partition]

    def elected(self, topic: str, partition: int) -> list[tuple[str, int, int, list[int]]]:
        """(strategy, leader, leader epoch, ISR) of each traced election."""
        return [
            (event["strategy"], event["leader"], event["leader_epoch"], event["isr"])
            for event in self.tracer.of(Kind.LEADER_ELECTED)
            if (event["topic"], event["partition"]) == (topic, partition)
        ]


@asynccontextmanager
async def nodes(address: str, *ids: int, **properties: object) -> AsyncIterator[list[Node]]:
    """Start one after the other, so the first is the controller."""
    started: list[Node] = []
    try:
        for broker_id in ids:
            node = Node(address, broker_id, **properties)
            started.append(node)
            await node.start()
        await until(lambda: set(started[0].controller.context.live_brokers) == set(ids))
        yield started
    finally:
        for node in reversed(started):
            await node.stop()


async def create_topic(node: Node, topic: str, *replicas: tuple[int, ...]) -> None:
    """Create a topic with one partition for each tuple of replicas, and wait until the controller has put it online."""
    assignment = TopicAssignment(
        topic, TOPIC_ID, {p: ReplicaAssignment(r) for p, r in enumerate(replicas)}
    )
    await node.zk_client.topics.create_topic(assignment, {})


async def until(condition: Callable[[], bool], timeout_s: float = 15) -> None:
    """Wait for what the controller's own task brings about."""
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, 60))
