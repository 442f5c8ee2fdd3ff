"""KafkaClient: metadata, send and poll; one attempt per operation. What administrators ask for is in ``admin``.

Every method that changes or reads data makes exactly one request and tells exactly what came of it. Looking for
metadata is not an operation: it may ask any broker, any number of times. Versions are those of Kafka 3.9: Metadata 12,
Produce 9, Fetch 13 (by topic id), ListOffsets 7.

Numbers are ``cast``: the check that kio's types make would cost more than the rest of a request, and writing them
checks them too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251 - the type only
from typing import Any

from kio.schema.produce.v9.request import ProduceRequest

from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka.cluster_metadata import ALL_TOPICS, ClusterMetadata, cluster_metadata
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.connections import Connections
from nemesis.workloads.kafka.errors import ConnectionFailed, KafkaError
from nemesis.workloads.kafka.fetches import FetchPosition, FetchSession
from nemesis.workloads.kafka.frames import Traffic
from nemesis.workloads.kafka.offset_requests import (
    EARLIEST,
    LATEST,
    list_offsets_request,
    listed_offset,
)
from nemesis.workloads.kafka.poll_answers import Polled, read_poll
from nemesis.workloads.kafka.produces import Sent, produce_request, produced
from nemesis.workloads.kafka.record_batch import NewRecord, build
from nemesis.workloads.kafka.timeouts import milliseconds

_METADATA_TIMEOUT_S = 1.0


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
        traffic: Traffic | None = None,
    ) -> None:
        """``epoch_ms`` is the time of day, in milliseconds since 1970, at which the loop's time was zero.

        ``traffic`` counts what the process of the client does.
        """
        self.metadata = ClusterMetadata()
        self._bootstrap = bootstrap
        self._rng = rng
        self._epoch_ms = epoch_ms
        counted = traffic or Traffic()
        self._connections, self._coordinator_connections = (
            Connections(client_id=client_id, source_host=source_host, codec=codec, traffic=counted)
            for _ in range(2)
        )

    async def refresh_metadata(self, *, timeout_s: float = _METADATA_TIMEOUT_S) -> bool:
        """Ask one random broker for all metadata; return whether it answered. Never raises ``KafkaError``."""
        try:
            response = await self.ask_any(ALL_TOPICS, timeout_s)
        except KafkaError:
            return False
        self.metadata = cluster_metadata(response)
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
        self,
        topic: str,
        partition: int,
        batch: bytes,
        *,
        acks: int,
        timeout_s: float,
        transactional_id: str | None = None,
        kind: type[ProduceRequest] = ProduceRequest,
    ) -> Sent:
        """Send a batch as it is to the leader that the metadata names. Raises ``KafkaError``."""
        tp = topic, partition
        outcomes = await self.send_batches(
            {tp: batch},
            acks=acks,
            timeout_s=timeout_s,
            transactional_id=transactional_id,
            kind=kind,
        )
        outcome = outcomes[tp]
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def send_batches(
        self,
        batches: Mapping[tuple[str, int], bytes],
        *,
        acks: int,
        timeout_s: float,
        transactional_id: str | None = None,
        kind: type[ProduceRequest] = ProduceRequest,
    ) -> dict[tuple[str, int], Sent | KafkaError]:
        """Send a batch to each of these partitions in one request, to the leader of the first one.

        ``kind`` is the class of the request, Produce 9 by default.

        Returns the outcome of each; with ``acks=0`` no more than that it was sent, at offset −1. Raises ``KafkaError``
        when the whole request failed.
        """
        leader = self.metadata.leader(*next(iter(batches)))
        node = -1 if leader is None else leader
        request = produce_request(
            batches, acks=acks, timeout_s=timeout_s, transactional_id=transactional_id, kind=kind
        )
        if acks == 0:
            await self.request(node, request, timeout_s, is_answered=False)
            return {tp: Sent(offset=-1, node=node) for tp in batches}
        response = await self.request(node, request, timeout_s)
        return produced(response, batches, node)

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
            tp: read_poll(answers[keys[tp]], position, node, is_committed=session.is_committed)
            for tp, position in positions.items()
        }

    async def end_offset(
        self, topic: str, partition: int, *, timeout_s: float, is_committed: bool = False
    ) -> int:
        """Return the offset below which everything committed lies. Raises ``KafkaError``.

        ``is_committed``: below it every transaction is decided, too. It is the last stable offset then.
        A leader that does not know it yet, because its high watermark has not reached the start of its epoch, answers
        OFFSET_NOT_AVAILABLE (KIP-207); the high watermark of a fetch makes no such promise.
        """
        return await self._list_offset(
            topic, partition, LATEST, timeout_s, is_committed=is_committed
        )

    async def start_offset(self, topic: str, partition: int, *, timeout_s: float) -> int:
        """Return where the leader's log starts. Raises ``KafkaError``."""
        return await self._list_offset(topic, partition, EARLIEST, timeout_s)

    async def _list_offset(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        timeout_s: float,
        *,
        is_committed: bool = False,
    ) -> int:
        leader = self.metadata.leader(topic, partition)
        if leader is None:
            raise ConnectionFailed("LEADER_UNKNOWN", definite=True)
        leader_epoch = self.metadata.topics[topic].partitions[partition].leader_epoch
        request = list_offsets_request(
            (topic, partition), timestamp, leader_epoch=leader_epoch, is_committed=is_committed
        )
        return listed_offset(await self.request(leader, request, timeout_s))

    async def request(
        self, node: int, request: Any, timeout_s: float, *, is_answered: bool = True
    ) -> Any:
        """Send one request to a broker that the metadata names; returns its response. Raises ``KafkaError``."""
        return await self._connections.request(
            self.metadata.brokers, node, request, timeout_s, is_answered=is_answered
        )

    async def request_coordinator(self, node: int, request: Any, timeout_s: float) -> Any:
        """Send one request to a coordinator. Raises ``KafkaError``.

        The connection is its own, as in Kafka's consumers: fetches do not wait behind a JoinGroup.
        """
        return await self._coordinator_connections.request(
            self.metadata.brokers, node, request, timeout_s
        )

    async def ask_any(self, request: Any, timeout_s: float) -> Any:
        """Send one request to one random broker, on a connection of its own. Raises ``KafkaError``."""
        address = self._rng.choice([*self.metadata.brokers.values(), *self._bootstrap])
        return await self.ask(address, request, timeout_s)

    async def ask(self, address: tuple[str, int], request: Any, timeout_s: float) -> Any:
        """Send one request to whoever is there, on a connection of its own. Raises ``KafkaError``."""
        return await self._connections.ask(address, request, timeout_s)

    def close(self) -> None:
        self._connections.close()
        self._coordinator_connections.close()
