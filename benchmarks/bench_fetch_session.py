"""What a follower's fetch of 1,000 partitions costs both brokers when nothing is new, or a few partitions have records.

Leader and follower are real, in one process: logs, replicas, fetcher, Kafka's messages through the codec; only the
connection between them is a call. With sessions (KIP-227) and, with no room for any, without. Shown per fetch: bytes of
request and answer, and processor time of both brokers together, which is what such a fetch adds to an idle cluster.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.table import Table

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import (
    Broker,
    BrokerEndPoint,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    TopicPartition,
    UpdateMetadataPartitionState,
)
from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.schema import response_class
from nemesis.reference.server.alter_partition_manager import DefaultAlterPartitionManager
from nemesis.reference.server.apis.fetch import FetchApis
from nemesis.reference.server.fetch_manager import FetchManager
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_manager import ReplicaManager
from nemesis.reference.trace import NullTracer
from nemesis.workloads.kafka import record_batch

PARTITIONS = 1_000
FETCHES = 100
BUSY = 10
"""So many partitions get a record before each fetch of the busy leader."""
TOPIC_ID = UUID(int=7)
BROKERS = [Broker.at(n, "127.0.0.1", 9090 + n) for n in (1, 2)]
NODES = [BrokerEndPoint(n, "127.0.0.1", 9090 + n) for n in (1, 2)]
KEYS = [TopicPartition("t", number) for number in range(PARTITIONS)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one fetch, on the average."""

    request_bytes: float
    response_bytes: float
    processor_ms: float


def main() -> None:
    """Measure the four cases, print a table."""
    table = Table("partitions with records", "sessions", "request", "answer", "both brokers")
    for busy in (0, BUSY):
        for sessions in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                cost = asyncio.run(_measure(Path(directory), busy=busy, sessions=sessions))
            table.add_row(
                f"{busy} of {PARTITIONS}",
                "yes" if sessions else "no",
                f"{cost.request_bytes:,.0f} bytes",
                f"{cost.response_bytes:,.0f} bytes",
                f"{cost.processor_ms:.2f} ms",
            )
    Console(width=100).print(table)


class _Leader:
    """The follower's connection: the leader's answers, and what they cost."""

    def __init__(self, apis: FetchApis) -> None:
        self.apis = apis
        self.before_fetch: Callable[[], None] = lambda: None
        self.fetches = self.request_bytes = self.response_bytes = 0
        self.started = 0.0
        self.done = asyncio.Event()

    async def send(self, host: str, port: int, request: Any, *, timeout_s: float) -> Any:
        del host, port, timeout_s
        if self.fetches == 1:  # the first is always full
            self.request_bytes = self.response_bytes = 0
            self.started = time.process_time()
        if self.fetches == FETCHES + 1:
            self.done.set()
            await asyncio.Event().wait()
        self.fetches += 1
        frame = encode_request(request, correlation_id=1, client_id="follower")
        arrived = decode_request(frame[SIZE_BYTES:], is_offered=lambda *_: True)
        self.before_fetch()
        response = self.apis.handle_fetch(arrived.message)
        if isinstance(response, asyncio.Future):
            response = await response
        answer = encode_response(response, correlation_id=1)
        self.request_bytes += len(frame)
        self.response_bytes += len(answer)
        return decode_response(answer[SIZE_BYTES:], response_class(type(request)))[1]

    async def close(self) -> None:
        pass


async def _measure(directory: Path, *, busy: int, sessions: bool) -> Cost:
    rng = Random(1)
    leader_logs, leader, cache = _broker(directory, 1)
    slots = 1_000 if sessions else 0
    connection = _Leader(
        FetchApis(leader.fetches, cache, FetchManager(slots, rng=rng, topic_name=cache.topic_name))
    )
    follower_logs, follower, _ = _broker(directory, 2, connection)
    one_record = record_batch.build([(None, b"x" * 100)], 0)

    def append() -> None:
        entries = dict.fromkeys(rng.sample(KEYS, busy), one_record)
        leader.appends.append_records(timeout_ms=0, acks=1, entries=entries, respond=lambda _: None)

    connection.before_fetch = append
    for broker in (leader, follower):
        _appoint(broker)
    await connection.done.wait()
    spent = time.process_time() - connection.started
    await follower.shutdown()
    await leader.shutdown()
    leader_logs.close()
    follower_logs.close()
    return Cost(
        connection.request_bytes / FETCHES,
        connection.response_bytes / FETCHES,
        spent / FETCHES * 1e3,
    )


def _broker(
    directory: Path, broker_id: int, leader: _Leader | None = None
) -> tuple[LogManager, ReplicaManager, MetadataCache]:
    config = KafkaConfig.from_properties(
        {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://127.0.0.1:{9090 + broker_id}",
            "zookeeper.connect": "127.0.0.1:2181",
            "log.dirs": (str(directory / str(broker_id)),),
            "replica.fetch.wait.max.ms": 1,
        }
    )
    logs = LogManager(config, RealDisk())
    logs.load_logs()
    cache = MetadataCache(broker_id)
    connection = leader or _Leader(None)  # type: ignore[arg-type]  # a leader asks nobody
    manager = ReplicaManager(
        config,
        tracer=NullTracer(),
        log_manager=logs,
        metadata_cache=cache,
        alter_partition_manager=DefaultAlterPartitionManager(
            config, metadata_cache=cache, broker_epoch=lambda: 1, connection=connection
        ),
        scheduler=KafkaScheduler(),
        broker_epoch=lambda: 1,
        connect=lambda _: connection,
    )
    return logs, manager, cache


def _appoint(broker: ReplicaManager) -> None:
    """Broker 1 leads all, broker 2 follows."""
    decided = LeaderAndIsr(1, 0, (1, 2))
    partition_states = [
        UpdateMetadataPartitionState(key, TOPIC_ID, 1, 1, 0, (1, 2), 0, (1, 2)) for key in KEYS
    ]
    states = [LeaderAndIsrPartitionState(key, TOPIC_ID, 1, decided, (1, 2)) for key in KEYS]
    broker.maybe_update_metadata_cache(1, 1, -1, BROKERS, partition_states)
    broker.become_leader_or_follower(1, 1, -1, states, NODES)


if __name__ == "__main__":
    main()
