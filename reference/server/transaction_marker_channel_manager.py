"""The markers on their way to the leaders of partitions; implements ``MarkerChannels``.

All markers for a broker go in one WriteTxnMarkers at a time. A partition without a live leader is answered at once: its
sender retries.

Source: kafka.coordinator.transaction.TransactionMarkerChannelManager of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kio.schema.errors import ErrorCode
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v1.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.static.primitive import i16, i32

from nemesis.reference.coordinator.transaction.transaction_completions import (
    MarkerErrors,
    TransactionMarker,
)
from nemesis.reference.coordinator.transaction.transaction_state_manager import REQUEST_TIMEOUT_MS
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.server.connection import ConnectionFactory
from nemesis.reference.server.inter_broker_senders import InterBrokerSenders
from nemesis.reference.server.metadata_cache import MetadataCache

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Queued:
    marker: TransactionMarker
    partitions: tuple[TopicPartition, ...]
    on_answer: Callable[[MarkerErrors], None]


class TransactionMarkerChannelManager:
    """Needs the cache for leaders and brokers."""

    def __init__(
        self, config: KafkaConfig, *, metadata_cache: MetadataCache, connect: ConnectionFactory
    ) -> None:
        self._listener_name = config.listener_config.inter_broker_listener_name
        self._metadata_cache = metadata_cache
        self._senders = InterBrokerSenders(
            "txn-marker-sender",
            f"broker-{config.broker_id}-txn-marker-sender",
            connect=connect,
            new_queue=list[_Queued],
            send_all=self._send,
        )

    def exists(self, topic_partition: TopicPartition) -> bool:
        return self._metadata_cache.contains(topic_partition)

    def send(
        self,
        marker: TransactionMarker,
        partitions: Iterable[TopicPartition],
        on_answer: Callable[[MarkerErrors], None],
    ) -> None:
        by_leader: dict[int | None, list[TopicPartition]] = {}
        for key in partitions:
            by_leader.setdefault(self._live_leader(key), []).append(key)
        for leader, keys in by_leader.items():
            if leader is None:
                unavailable = dict.fromkeys(keys, ErrorCode.leader_not_available)
                asyncio.get_running_loop().call_soon(on_answer, unavailable)
            else:
                self._senders.queue(leader).append(_Queued(marker, tuple(keys), on_answer))

    async def shutdown(self) -> None:
        """Send nothing from now on; what is queued is dropped, as with the process."""
        await self._senders.shutdown()

    def _live_leader(self, key: TopicPartition) -> int | None:
        info = self._metadata_cache.partition_info(key)
        if info is None:
            return None
        node = self._metadata_cache.alive_broker_node(info.leader, self._listener_name)
        return None if node is None else node.id

    async def _send(self, broker_id: int, batch: Sequence[_Queued]) -> None:
        errors = await self._written(broker_id, batch)
        for queued in batch:
            answer = {
                key: errors.get((queued.marker.producer_id, key), ErrorCode.network_exception)
                for key in queued.partitions
            }
            try:
                queued.on_answer(answer)
            except Exception:
                _logger.exception("markers of producer %d failed", queued.marker.producer_id)

    async def _written(
        self, broker_id: int, batch: Sequence[_Queued]
    ) -> dict[tuple[int, TopicPartition], ErrorCode]:
        """Return the error of each producer's partition; without an answer there are none."""
        node = self._metadata_cache.alive_broker_node(broker_id, self._listener_name)
        if node is None:
            return {}
        connection = self._senders.connection(broker_id)
        try:
            response = await connection.send(
                node.host, node.port, _request(batch), timeout_s=REQUEST_TIMEOUT_MS / 1000
            )
        except NetworkError as error:
            _logger.info("markers for broker %d: %s", broker_id, error)
            return {}
        return _errors(response)


def _request(batch: Sequence[_Queued]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=tuple(
            WritableTxnMarker(
                producer_id=ProducerId(queued.marker.producer_id),
                producer_epoch=i16(queued.marker.producer_epoch),
                transaction_result=queued.marker.is_commit,
                topics=_topics(queued.partitions),
                coordinator_epoch=i32(queued.marker.coordinator_epoch),
            )
            for queued in batch
        )
    )


def _topics(partitions: Iterable[TopicPartition]) -> tuple[WritableTxnMarkerTopic, ...]:
    by_topic: dict[str, list[i32]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(i32(number))
    return tuple(
        WritableTxnMarkerTopic(name=cast("TopicName", topic), partition_indexes=tuple(numbers))
        for topic, numbers in by_topic.items()
    )


def _errors(response: Any) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (int(marker.producer_id), TopicPartition(topic.name, int(item.partition_index))): (
            item.error_code
        )
        for marker in response.markers
        for topic in marker.topics
        for item in topic.partitions
    }
