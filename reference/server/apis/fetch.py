"""Fetch.

Records pass as opaque bytes. Topics are named by id from version 13 on. There are no fetch sessions: a request
that asks for one gets session 0 ("none") and goes on with full requests, as with a Kafka whose session cache is
full.
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
    TopicPartition,
)
from reference.protocol.schema import (
    build,
    build_items,
    builder,
    cached,
    field_names,
    item_class,
)
from reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from reference.server.apis.current_leaders import current_leader, node_endpoints
from reference.server.delayed_fetch import FetchResults
from reference.server.metadata_cache import MetadataCache
from reference.server.replica_manager import ReplicaManager

FETCH_MAX_BYTES: Final = 55 * 1024 * 1024
"""Kafka's default of ``fetch.max.bytes``: the most that one consumer fetch returns."""

_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2
_READ_COMMITTED: Final = 1


class FetchApis:
    """Needs the replicas, and the cache for topic ids and current leaders."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

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
            **node_endpoints(response, leaders, self._metadata_cache),
        )


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
        values |= current_leader(
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
