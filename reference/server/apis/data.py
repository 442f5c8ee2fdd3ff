"""Produce and Fetch.

Records pass as opaque bytes. Fetch names topics by id from version 13 on. There are no fetch sessions: a
request that asks for one gets session 0 ("none") and goes on with full requests, as with a Kafka whose
session cache is full.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from reference.model import (
    EpochEndOffset,
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    ProducePartitionResult,
    TopicPartition,
)
from reference.network.request_channel import CloseConnectionError
from reference.protocol.record_batch import RecordError, iter_batches
from reference.protocol.schema import (
    build,
    build_items,
    builder,
    cached,
    field_names,
    item_class,
)
from reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from reference.server.delayed_fetch import FetchResults
from reference.server.metadata_cache import MetadataCache
from reference.server.replica_manager import ReplicaManager

VALID_ACKS: Final = (-1, 0, 1)
FETCH_MAX_BYTES: Final = 55 * 1024 * 1024
"""Kafka's default of ``fetch.max.bytes``: the most that one consumer fetch returns."""

_FIRST_PRODUCE_VERSION_OF_FORMAT_2: Final = 3
_FIRST_PRODUCE_VERSION_WITH_ZSTD: Final = 7
_ZSTD: Final = 4
_CODEC_BITS: Final = 0x07
_TRANSACTIONAL_BIT: Final = 0x10
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2
_READ_COMMITTED: Final = 1
_NOBODY: Final = frozenset({-1})
_NOT_LEADER: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


class DataApis:
    """Needs the replicas, and the cache for topic ids and current leaders."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle_produce(self, message: Any) -> Any | Awaitable[Any]:
        """The response, or None for acks=0; an error of acks=0 closes the connection, as Kafka does."""
        refused: dict[TopicPartition, ProducePartitionResult] = {}
        entries: dict[TopicPartition, bytes] = {}
        for topic in message.topic_data:
            for partition in topic.partition_data:
                topic_partition = TopicPartition(topic.name, partition.index)
                error = self._produce_error(message, topic_partition, partition.records)
                if error is None:
                    entries[topic_partition] = partition.records
                else:
                    refused[topic_partition] = ProducePartitionResult(error)
        if not entries:
            return self._answer_produce(message, refused)
        return self._replica_manager.append_records(
            timeout_ms=milliseconds(message.timeout),
            acks=message.acks,
            entries=entries,
            respond=lambda results: self._answer_produce(message, refused | results),
        )

    def _answer_produce(
        self, message: Any, results: dict[TopicPartition, ProducePartitionResult]
    ) -> Any:
        if message.acks == 0:
            errors = {tp: r.error for tp, r in results.items() if r.error is not ErrorCode.none}
            if errors:
                raise CloseConnectionError(f"produce with acks=0 failed: {errors}")
            return None
        return self._produce_response(message, results)

    def _produce_error(
        self, message: Any, topic_partition: TopicPartition, records: bytes | None
    ) -> ErrorCode | None:
        """Why a partition's records are refused before any replica is asked; None if they are not."""
        if message.acks not in VALID_ACKS:
            return ErrorCode.invalid_required_acks
        if message.__version__ < _FIRST_PRODUCE_VERSION_OF_FORMAT_2:
            return ErrorCode.unsupported_for_message_format
        if message.transactional_id is not None:
            return ErrorCode.invalid_producer_id_mapping
        if not self._metadata_cache.contains(topic_partition):
            return ErrorCode.unknown_topic_or_partition
        return _records_error(records or b"", message.__version__)

    def _produce_response(
        self, message: Any, results: dict[TopicPartition, ProducePartitionResult]
    ) -> Any:
        response = response_of(message)
        topic_class = item_class(response, "responses")
        partition_class = item_class(topic_class, "partition_responses")
        leaders: set[int] = set()
        topics = []
        for topic in message.topic_data:
            partitions = []
            for partition in topic.partition_data:
                topic_partition = TopicPartition(topic.name, partition.index)
                result = results[topic_partition]
                values: dict[str, Any] = {
                    "index": partition.index,
                    "error_code": result.error,
                    "base_offset": result.base_offset,
                    "log_start_offset": result.log_start_offset,
                    "record_errors": (),
                    "error_message": result.error_message,
                }
                if result.error in _NOT_LEADER:
                    info = self._metadata_cache.partition_info(topic_partition)
                    if info is not None:
                        leaders.add(info.leader)
                        values |= _current_leader(partition_class, info.leader, info.leader_epoch)
                partitions.append(build(partition_class, **values))
            topics.append({"name": topic.name, "partition_responses": tuple(partitions)})
        return build(
            response,
            responses=build_items(response, "responses", topics),
            throttle_time=NO_THROTTLE,
            **self._node_endpoints(response, leaders),
        )

    def handle_fetch(self, message: Any) -> Any | Awaitable[Any]:
        """The response, once ``min_bytes`` are there, an error occurred or ``max_wait`` has passed."""
        if getattr(message, "session_id", 0) != 0:
            # We hand out no sessions, so this one is of another broker or of an earlier life.
            return build(
                response_of(message),
                throttle_time=NO_THROTTLE,
                error_code=ErrorCode.fetch_session_id_not_found,
                responses=(),
            )
        asked = self._asked(message)
        if not asked.requests:
            return self._fetch_response(message, asked.partitions, asked.refused)
        return self._replica_manager.fetch(
            _fetch_params(message),
            asked.requests,
            lambda results: self._fetch_response(
                message, asked.partitions, results | asked.refused
            ),
        )

    def _asked(self, message: Any) -> _Asked:
        asked = _Asked([], {}, {})
        contains = self._metadata_cache.contains
        for topic in message.topics:
            topic_id: UUID | None = getattr(topic, "topic_id", None)
            name = topic.topic if hasattr(topic, "topic") else self._topic_name(topic_id)
            read_fields = _fetch_fields(item_class(type(topic), "partitions"))
            keys = [
                TopicPartition(name or "", partition.partition) for partition in topic.partitions
            ]
            asked.partitions.append(keys)
            for key, partition in zip(keys, topic.partitions, strict=True):
                if contains(key):
                    fields = read_fields(partition)
                    asked.requests[key] = FetchPartitionRequest(key, topic_id, *fields)
                else:
                    unknown = (
                        ErrorCode.unknown_topic_id
                        if name is None
                        else ErrorCode.unknown_topic_or_partition
                    )
                    asked.refused[key] = FetchPartitionResult(key, unknown)
        return asked

    def _topic_name(self, topic_id: UUID | None) -> str | None:
        return None if topic_id is None else self._metadata_cache.topic_name(topic_id)

    def _fetch_response(
        self, message: Any, asked: list[list[TopicPartition]], results: FetchResults
    ) -> Any:
        response = response_of(message)
        topic_class = item_class(response, "responses")
        partition_class = item_class(topic_class, "partitions")
        name_field = "topic" if "topic" in field_names(topic_class) else "topic_id"
        topics = [
            {
                name_field: getattr(topic, name_field),
                "partitions": tuple(
                    [_partition_data(partition_class, results[key]) for key in keys]
                ),
            }
            for topic, keys in zip(message.topics, asked, strict=True)
        ]
        leaders = {result.current_leader_id for result in results.values()}
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            session_id=0,
            responses=build_items(response, "responses", topics),
            **self._node_endpoints(response, leaders),
        )

    def _node_endpoints(self, response: type[Any], leaders: set[int]) -> dict[str, Any]:
        """Where the current leaders are (KIP-951; −1 is none); nothing for versions that cannot say it."""
        if leaders <= _NOBODY or "node_endpoints" not in field_names(response):
            return {}
        brokers = [self._metadata_cache.alive_broker(leader) for leader in sorted(leaders)]
        end_points = build_items(
            response,
            "node_endpoints",
            (
                {"node_id": b.id, "host": b.host, "port": b.port, "rack": b.rack}
                for b in brokers
                if b is not None
            ),
        )
        return {"node_endpoints": end_points}


class _Asked(NamedTuple):
    """A fetch request, read: the partitions of each of its topics, and once each what to ask of the replicas.

    A partition that is named twice counts once, as it was named last; so it does in Kafka.
    """

    partitions: list[list[TopicPartition]]
    requests: dict[TopicPartition, FetchPartitionRequest]
    refused: FetchResults
    """Those that no replica needs to be asked about."""


@cached
def _fetch_fields(partition_class: type[Any]) -> Callable[[Any], tuple[int, ...]]:
    """Reads a partition of a fetch request: what follows the topic's id in ``FetchPartitionRequest``."""
    names = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
    )
    if field_names(partition_class).issuperset(names):
        return attrgetter(*names)
    return lambda partition: tuple(getattr(partition, name, -1) for name in names)


def _fetch_params(message: Any) -> FetchParams:
    state = getattr(message, "replica_state", None)
    replica_id = message.replica_id if state is None else state.replica_id
    is_consumer = replica_id in (_CONSUMER, _DEBUGGING_CONSUMER)
    if not is_consumer:
        isolation = FetchIsolation.LOG_END
    elif message.isolation_level == _READ_COMMITTED:
        isolation = FetchIsolation.TXN_COMMITTED
    else:
        isolation = FetchIsolation.HIGH_WATERMARK
    max_bytes = min(message.max_bytes, FETCH_MAX_BYTES) if is_consumer else message.max_bytes
    return FetchParams(
        replica_id=replica_id,
        max_wait_ms=max(milliseconds(message.max_wait), 0),
        min_bytes=min(message.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        replica_epoch=-1 if state is None else state.replica_epoch,
    )


def _records_error(records: bytes, version: int) -> ErrorCode | None:
    """A produce request carries one batch of format 2 per partition; what else is wrong the log finds out."""
    try:
        batches = list(iter_batches(records))
    except RecordError as error:
        return error.error_code
    if len(batches) != 1:
        return ErrorCode.invalid_record
    batch = batches[0]
    if batch.attributes & _CODEC_BITS == _ZSTD and version < _FIRST_PRODUCE_VERSION_WITH_ZSTD:
        return ErrorCode.unsupported_compression_type
    if batch.attributes & _TRANSACTIONAL_BIT:
        return ErrorCode.invalid_txn_state
    if batch.producer_id >= 0:
        # Producer ids come from InitProducerId, which is not offered; to accept the batch would promise
        # a deduplication that does not happen.
        return ErrorCode.unknown_producer_id
    return None


def _partition_data(partition_class: type[Any], result: FetchPartitionResult) -> Any:
    """One partition of a fetch response."""
    if not result.records and result.error is ErrorCode.none and result.diverging_epoch is None:
        return _idle_partition_data(partition_class)(
            result.topic_partition.partition, result.high_watermark, result.log_start_offset
        )
    values = {
        "partition_index": result.topic_partition.partition,
        "error_code": result.error,
        "high_watermark": result.high_watermark,
        "last_stable_offset": result.high_watermark,
        "log_start_offset": result.log_start_offset,
        "aborted_transactions": None,
        "records": result.records,
    }
    if result.current_leader_id >= 0:
        values |= _current_leader(
            partition_class, result.current_leader_id, result.current_leader_epoch
        )
    if result.diverging_epoch is not None:
        values |= _diverging_epoch(partition_class, result.diverging_epoch)
    return builder(partition_class)(values)


@cached
def _idle_partition_data(partition_class: type[Any]) -> Callable[[int, int, int], Any]:
    """Says that there is no news. Mostly that was said before, and what is immutable can be sent again."""

    @lru_cache(maxsize=1024)
    def idle(index: int, high_watermark: int, log_start_offset: int) -> Any:
        return build(
            partition_class,
            partition_index=index,
            error_code=ErrorCode.none,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=log_start_offset,
            aborted_transactions=None,
            records=b"",
        )

    return idle


def _current_leader(partition_class: type[Any], leader: int, leader_epoch: int) -> dict[str, Any]:
    """Whom the sender should turn to; nothing in versions that cannot say it."""
    if "current_leader" not in partition_class.__dataclass_fields__:
        return {}
    leader_class = item_class(partition_class, "current_leader")
    return {"current_leader": leader_class(leader_id=leader, leader_epoch=leader_epoch)}


def _diverging_epoch(partition_class: type[Any], diverging: EpochEndOffset) -> dict[str, Any]:
    """Where the sender's log parts from ours; nothing in versions that cannot say it."""
    if "diverging_epoch" not in partition_class.__dataclass_fields__:
        return {}
    epoch_class = item_class(partition_class, "diverging_epoch")
    return {
        "diverging_epoch": epoch_class(
            epoch=diverging.leader_epoch, end_offset=diverging.end_offset
        )
    }
