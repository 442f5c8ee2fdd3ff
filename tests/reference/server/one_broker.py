"""A broker of its own: real logs and partitions, silent peers, and the test as its controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.model import (
    LEADER_DURING_DELETE,
    Broker,
    BrokerEndPoint,
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    ProducePartitionResult,
    StopReplicaPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.server.alter_partition_manager import DefaultAlterPartitionManager
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_manager import ReplicaManager
from tests.reference.cluster.hosting import TOPIC_ID, TP, Trace, config, log_manager
from tests.reference.server.answers import answered
from tests.reference.virtual_time import run

BROKERS = [Broker.at(n, f"127.0.0.{n}", 9092) for n in (1, 2, 3)]
NODES = [BrokerEndPoint(n, f"127.0.0.{n}", 9092) for n in (1, 2, 3)]
BROKER_EPOCH = 50


class SilentConnection:
    """A peer that never answers."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        self.requests.append(request)
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


class Node:
    """Broker 1, its peers silent; the test is the controller."""

    def __init__(self, directory: Path, **properties: Any) -> None:
        self.config = config(directory, **properties)
        self.trace = Trace()
        self.logs = log_manager(self.config)
        self.cache = MetadataCache(1)
        self.scheduler = KafkaScheduler()
        self.peers: list[SilentConnection] = []
        self.log_dir_failures = 0
        """How often the controller was to be told."""
        self.manager = ReplicaManager(
            self.config,
            tracer=self.trace,
            log_manager=self.logs,
            metadata_cache=self.cache,
            alter_partition_manager=DefaultAlterPartitionManager(
                self.config,
                metadata_cache=self.cache,
                broker_epoch=lambda: BROKER_EPOCH,
                connection=SilentConnection(),
            ),
            scheduler=self.scheduler,
            broker_epoch=lambda: BROKER_EPOCH,
            connect=self._connect,
            on_log_dir_failure=self._note_log_dir_failure,
        )

    def _note_log_dir_failure(self) -> None:
        self.log_dir_failures += 1

    def _connect(self, client_id: str) -> SilentConnection:
        assert client_id.startswith("broker-1-fetcher-")
        self.peers.append(SilentConnection())
        return self.peers[-1]

    def update_metadata(self, epoch: int = 1, broker_epoch: int = BROKER_EPOCH) -> ErrorCode:
        state = UpdateMetadataPartitionState(TP, TOPIC_ID, epoch, 1, 0, (1, 2, 3), 0, (1, 2, 3))
        return self.manager.maybe_update_metadata_cache(3, epoch, broker_epoch, BROKERS, [state])

    def announce_deletion(self) -> ErrorCode:
        """What the controller says before it lets the replicas of a topic be deleted."""
        gone = UpdateMetadataPartitionState(
            TP, TOPIC_ID, 1, LEADER_DURING_DELETE, 0, (1,), 0, (1, 2, 3)
        )
        return self.manager.maybe_update_metadata_cache(3, 1, BROKER_EPOCH, BROKERS, [gone])

    def lisr(
        self, *states: Any, epoch: int = 1, broker_epoch: int = BROKER_EPOCH
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        return self.manager.become_leader_or_follower(3, epoch, broker_epoch, states, NODES)

    def stop(
        self, leader_epoch: int, *, delete: bool, epoch: int = 1
    ) -> tuple[ErrorCode, dict[TopicPartition, ErrorCode]]:
        state = StopReplicaPartitionState(TP, leader_epoch, delete)
        return self.manager.stop_replicas(3, epoch, BROKER_EPOCH, [state])

    async def fetch(
        self,
        offset: int,
        *,
        replica_id: int = -1,
        epoch: int = -1,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        topic_id: UUID = TOPIC_ID,
        rack_id: str | None = None,
    ) -> list[FetchPartitionResult]:
        isolation = FetchIsolation.LOG_END if replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
        results = self.manager.fetches.fetch(
            FetchParams(replica_id, max_wait_ms, min_bytes, 1 << 20, isolation, rack_id=rack_id),
            {TP: FetchPartitionRequest(TP, topic_id, epoch, offset, -1, 0, 1 << 20)},
            respond=lambda results: list(results.values()),
        )
        return await answered(results)  # type: ignore[no-any-return]

    async def produce(
        self,
        records: bytes,
        *,
        acks: int = -1,
        timeout_ms: int = 1000,
        topic_partitions: tuple[TopicPartition, ...] = (TP,),
    ) -> dict[TopicPartition, ProducePartitionResult]:
        results = self.manager.appends.append_records(
            timeout_ms=timeout_ms,
            acks=acks,
            entries=dict.fromkeys(topic_partitions, records),
            respond=lambda settled: settled,
        )
        return await answered(results)  # type: ignore[no-any-return]

    @property
    def waiting(self) -> int:
        return len(self.manager.appends.purgatory) + len(self.manager.fetches.purgatory)


def on_node(tmp_path: Path, scenario: Callable[[Node], Awaitable[None]], **properties: Any) -> None:
    """Run with a broker that knows its peers; afterwards nothing waits any more."""

    async def main() -> None:
        node = Node(tmp_path, **properties)
        await node.manager.startup()
        node.update_metadata()
        await scenario(node)
        await node.manager.shutdown()
        assert node.waiting == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def time() -> float:
    return asyncio.get_running_loop().time()
