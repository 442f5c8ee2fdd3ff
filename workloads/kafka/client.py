"""KafkaClient: metadata, send and poll; one attempt per operation. What administrators ask for is in ``admin``.

Every method that changes or reads data makes exactly one request and tells exactly what came of it. Looking for
metadata is not an operation: it may ask any broker, any number of times. Versions are those of Kafka 3.9: Metadata 12,
Produce 9, Fetch 13 (by topic id), ListOffsets 7.

Numbers are ``cast``: the check that kio's types make would cost more than the rest of a request, and writing them
checks them too.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random  # noqa: TID251 - the type only
from typing import Any, NamedTuple, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.metadata.v12 import request as metadata
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.produce.v9 import request as produce
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.connection import KafkaConnection
from nemesis.workloads.kafka.errors import BadRecordBatch, BrokerError, ConnectionFailed, KafkaError
from nemesis.workloads.kafka.fetches import FetchPosition, FetchSession, PartitionAnswer
from nemesis.workloads.kafka.record_batch import NewRecord, Record, build, end_offset, read

_METADATA_TIMEOUT_S = 1.0
_CONSUMER = BrokerId(-1)
_READ_UNCOMMITTED = i8(0)
_LATEST_TIMESTAMP = i64(-1)
_EARLIEST_TIMESTAMP = i64(-2)


class PartitionMetadata(NamedTuple):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicMetadata(NamedTuple):
    topic_id: UUID
    partitions: dict[int, PartitionMetadata]


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """What one broker knew when it was asked."""

    brokers: dict[int, tuple[str, int]] = field(default_factory=dict)
    controller_id: int = -1
    topics: dict[str, TopicMetadata] = field(default_factory=dict)

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader's id when it is known and its address too, else None."""
        if (topic_metadata := self.topics.get(topic)) is None:
            return None
        partition_metadata = topic_metadata.partitions.get(partition)
        if partition_metadata is None or partition_metadata.leader not in self.brokers:
            return None
        return partition_metadata.leader

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """Ids of the brokers that hold a replica, alive or not; the partition must be known."""
        return self.topics[topic].partitions[partition].replicas


class Sent(NamedTuple):
    offset: int
    node: int


class Polled(NamedTuple):
    records: list[Record]
    high_watermark: int
    node: int
    log_start: int = 0
    """Where the log starts, if the position was below it; else 0."""
    end: int = 0
    """Behind the last batch: records at its end may have been compacted away. 0 when there was none."""

    def position_after(self, position: int) -> int:
        """Where to go on."""
        return max(position, self.log_start, self.end)


@lru_cache(maxsize=1024)
def milliseconds(value: int) -> i32Timedelta:
    """Return a time-out as kio writes it."""
    return cast("i32Timedelta", datetime.timedelta(milliseconds=value))


class KafkaClient:
    """One client process: its own metadata and one connection to each broker."""

    def __init__(
        self,
        bootstrap: list[tuple[str, int]],
        *,
        client_id: str,
        source_host: str,
        rng: Random,
        codec: Codec = wire_format,
        epoch_ms: int = 0,
    ) -> None:
        """``epoch_ms`` is the time of day, in milliseconds since 1970, at which the loop's time was zero."""
        self.metadata = ClusterMetadata()
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._source_host = source_host
        self._rng = rng
        self._codec = codec
        self._epoch_ms = epoch_ms
        self._connections: dict[int, KafkaConnection] = {}

    async def refresh_metadata(self, *, timeout_s: float = _METADATA_TIMEOUT_S) -> bool:
        """Ask one random broker for all metadata; return whether it answered. Never raises ``KafkaError``."""
        request = metadata.MetadataRequest(
            topics=None,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        try:
            response = await self.ask_any(request, timeout_s)
        except KafkaError:
            return False
        self.metadata = _cluster_metadata(response)
        return True

    async def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[NewRecord | tuple[bytes | None, bytes | None]],
        *,
        acks: int,
        timeout_s: float,
    ) -> Sent:
        """Send one batch to the leader that the metadata names. Raises ``KafkaError``."""
        batch = build(records, self.timestamp_ms())
        return await self.send_batch(topic, partition, batch, acks=acks, timeout_s=timeout_s)

    def timestamp_ms(self) -> int:
        """The time of day for what is sent now; it never goes back."""
        return self._epoch_ms + int(asyncio.get_running_loop().time() * 1000)

    async def send_batch(
        self, topic: str, partition: int, batch: bytes, *, acks: int, timeout_s: float
    ) -> Sent:
        """Send a batch as it is to the leader that the metadata names. Raises ``KafkaError``."""
        tp = topic, partition
        outcome = (await self.send_batches({tp: batch}, acks=acks, timeout_s=timeout_s))[tp]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def send_batches(
        self, batches: Mapping[tuple[str, int], bytes], *, acks: int, timeout_s: float
    ) -> dict[tuple[str, int], Sent | KafkaError]:
        """Send a batch to each of these partitions in one request, to the leader of the first one.

        Returns the outcome of each; with ``acks=0`` no more than that it was sent, at offset −1. Raises ``KafkaError``
        when the whole request failed.
        """
        leader = self.metadata.leader(*next(iter(batches)))
        node = -1 if leader is None else leader
        topics: dict[str, list[produce.PartitionProduceData]] = {}
        for (topic, partition), batch in batches.items():
            topics.setdefault(topic, []).append(
                produce.PartitionProduceData(
                    index=cast("i32", partition), records=cast("Records", batch)
                )
            )
        request = produce.ProduceRequest(
            transactional_id=None,
            acks=cast("i16", acks),
            timeout=milliseconds(int(timeout_s * 1000)),
            topic_data=tuple(
                produce.TopicProduceData(
                    name=cast("TopicName", topic), partition_data=tuple(partition_data)
                )
                for topic, partition_data in topics.items()
            ),
        )
        if acks == 0:
            await self.request(node, request, timeout_s, is_answered=False)
            return {tp: Sent(offset=-1, node=node) for tp in batches}
        response = await self.request(node, request, timeout_s)
        results = {
            (topic.name, int(result.index)): result
            for topic in response.responses
            for result in topic.partition_responses
        }
        return {tp: _produced(results.get(tp), node) for tp in batches}

    async def poll(
        self,
        topic: str,
        partition: int,
        position: int,
        *,
        max_wait_ms: int,
        max_bytes: int,
        timeout_s: float,
        node: int | None = None,
    ) -> Polled:
        """Fetch committed records from ``position`` on; records below it are dropped. Raises ``KafkaError``.

        ``node`` is the replica to read from, the leader by default. A follower's answer may end earlier (KIP-392).
        """
        leader = self.metadata.leader(topic, partition) if node is None else node
        if topic not in self.metadata.topics or leader is None:
            raise ConnectionFailed("LEADER_UNKNOWN", definite=True)
        polled = await self.poll_partitions(
            {(topic, partition): position},
            node=leader,
            session=FetchSession(is_kept=False),
            max_wait_ms=max_wait_ms,
            max_bytes=max_bytes,
            timeout_s=timeout_s,
        )
        outcome = polled[topic, partition]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def poll_partitions(
        self,
        positions: Mapping[tuple[str, int], int],
        *,
        node: int,
        session: FetchSession,
        max_wait_ms: int,
        max_bytes: int,
        timeout_s: float,
    ) -> dict[tuple[str, int], Polled | KafkaError]:
        """Fetch from these positions of known partitions, all in one request to ``node``.

        ``session`` is the one with this broker. Returns the outcome of each partition. Raises ``KafkaError`` when the
        whole request failed.
        """
        keys = {tp: (self.metadata.topics[tp[0]].topic_id, tp[1]) for tp in positions}
        request = session.request(
            {
                keys[topic, partition]: FetchPosition(
                    position, self.metadata.topics[topic].partitions[partition].leader_epoch
                )
                for (topic, partition), position in positions.items()
            },
            max_wait=milliseconds(max_wait_ms),
            max_bytes=max_bytes,
        )
        try:
            response = await self.request(node, request, timeout_s)
        except BaseException:
            session.failed()
            raise
        answers = session.answered(response)
        return {
            tp: _polled(answers[keys[tp]], position, node) for tp, position in positions.items()
        }

    async def end_offset(self, topic: str, partition: int, *, timeout_s: float) -> int:
        """Return the offset below which everything committed lies. Raises ``KafkaError``.

        A leader that does not know it yet, because its high watermark has not reached the start of its epoch, answers
        OFFSET_NOT_AVAILABLE (KIP-207); the high watermark of a fetch makes no such promise.
        """
        return await self._list_offset(topic, partition, _LATEST_TIMESTAMP, timeout_s)

    async def start_offset(self, topic: str, partition: int, *, timeout_s: float) -> int:
        """Return where the leader's log starts. Raises ``KafkaError``."""
        return await self._list_offset(topic, partition, _EARLIEST_TIMESTAMP, timeout_s)

    async def _list_offset(
        self, topic: str, partition: int, timestamp: i64, timeout_s: float
    ) -> int:
        leader = self.metadata.leader(topic, partition)
        if leader is None:
            raise ConnectionFailed("LEADER_UNKNOWN", definite=True)
        leader_epoch = self.metadata.topics[topic].partitions[partition].leader_epoch
        request = list_offsets.ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=_READ_UNCOMMITTED,
            topics=(
                list_offsets.ListOffsetsTopic(
                    name=cast("TopicName", topic),
                    partitions=(
                        list_offsets.ListOffsetsPartition(
                            partition_index=cast("i32", partition),
                            current_leader_epoch=cast("i32", leader_epoch),
                            timestamp=timestamp,
                        ),
                    ),
                ),
            ),
        )
        response = await self.request(leader, request, timeout_s)
        data = response.topics[0].partitions[0]
        if data.error_code is not ErrorCode.none:
            raise BrokerError(data.error_code)
        return int(data.offset)

    async def request(
        self, node: int, request: Any, timeout_s: float, *, is_answered: bool = True
    ) -> Any:
        """Send one request to a broker that the metadata names; returns its response. Raises ``KafkaError``."""
        if (address := self.metadata.brokers.get(node)) is None:
            raise ConnectionFailed("BROKER_UNKNOWN", definite=True)
        connection = self._connections.get(node)
        if connection is None or connection.address != address:
            if connection is not None:
                connection.close()
            connection = self._connections[node] = self._connect(*address)
        try:
            return await connection.request(request, timeout_s=timeout_s, is_answered=is_answered)
        except BaseException:
            del self._connections[node]
            raise

    async def ask_any(self, request: Any, timeout_s: float) -> Any:
        """Send one request to one random broker, on a connection of its own. Raises ``KafkaError``."""
        address = self._rng.choice([*self.metadata.brokers.values(), *self._bootstrap])
        return await self.ask(address, request, timeout_s)

    async def ask(self, address: tuple[str, int], request: Any, timeout_s: float) -> Any:
        """Send one request to whoever is there, on a connection of its own. Raises ``KafkaError``."""
        connection = self._connect(*address)
        try:
            return await connection.request(request, timeout_s=timeout_s)
        finally:
            connection.close()

    def _connect(self, host: str, port: int) -> KafkaConnection:
        return KafkaConnection(
            host,
            port,
            client_id=self._client_id,
            source_host=self._source_host,
            codec=self._codec,
        )

    def close(self) -> None:
        connections: Iterable[KafkaConnection] = self._connections.values()
        for connection in connections:
            connection.close()
        self._connections.clear()


def _produced(result: Any, node: int) -> Sent | KafkaError:
    """What a broker answered about one partition; ``result`` is None if it did not speak of the partition."""
    if result is None:
        return ConnectionFailed("PARTITION_NOT_ANSWERED", definite=False)
    if result.error_code is not ErrorCode.none:
        return BrokerError(result.error_code)
    return Sent(offset=int(result.base_offset), node=node)


def _polled(answer: PartitionAnswer | BrokerError, position: int, node: int) -> Polled | KafkaError:
    """Read the records of an answer from the position on."""
    if isinstance(answer, BrokerError):
        return answer
    try:
        records = [record for record in read(answer.records) if record.offset >= position]
    except BadRecordBatch as error:
        return error
    return Polled(records, answer.high_watermark, node, end=end_offset(answer.records))


def _cluster_metadata(response: MetadataResponse) -> ClusterMetadata:
    topics: dict[str, TopicMetadata] = {}
    for topic in response.topics:
        if topic.error_code is not ErrorCode.none or topic.name is None or topic.topic_id is None:
            continue
        topics[topic.name] = TopicMetadata(
            topic_id=topic.topic_id,
            partitions={
                int(p.partition_index): PartitionMetadata(
                    leader=int(p.leader_id),
                    leader_epoch=int(p.leader_epoch),
                    replicas=tuple(map(int, p.replica_nodes)),
                    isr=tuple(map(int, p.isr_nodes)),
                )
                for p in topic.partitions
            },
        )
    return ClusterMetadata(
        brokers={int(b.node_id): (b.host, int(b.port)) for b in response.brokers},
        controller_id=int(response.controller_id),
        topics=topics,
    )
