"""Fetch, in sessions or without.

Records pass as opaque bytes. Topics are named by id from version 13 on, sessions are of version 7 and later. What a
fetch is about, and what it is told, is in ``nemesis.reference.server.fetch_manager``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from nemesis.reference.model import (
    CONSUMER_ID,
    DEBUGGING_CONSUMER_ID,
    PLAINTEXT,
    AbortedTransaction,
    EpochEndOffset,
    FetchIsolation,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    TopicPartition,
)
from nemesis.reference.protocol.schema import (
    build,
    build_items,
    builder,
    cached,
    field_names,
    item_class,
)
from nemesis.reference.server.apis.conversion import (
    NO_THROTTLE,
    consumer_isolation,
    milliseconds,
    response_of,
)
from nemesis.reference.server.apis.current_leaders import current_leader, node_endpoints
from nemesis.reference.server.delayed_fetch import FetchRequests, FetchResults
from nemesis.reference.server.fetch_manager import FetchContext, FetchManager, FetchMetadata
from nemesis.reference.server.fetch_session import (
    FINAL_EPOCH,
    NO_SESSION,
    ForgottenPartitions,
    is_unnamed,
    unnamed_topic,
)
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.record_fetches import RecordFetches

FETCH_MAX_BYTES: Final = 55 * 1024 * 1024
"""Kafka's default of ``fetch.max.bytes``: the most that one consumer fetch returns."""

_FIRST_VERSION_WITH_TOPIC_IDS: Final = 13


class FetchApis:
    """Needs the replicas, the cache for topic ids and current leaders, and the sessions."""

    def __init__(
        self,
        fetches: RecordFetches,
        metadata_cache: MetadataCache,
        fetch_manager: FetchManager,
    ) -> None:
        self._fetches = fetches
        self._metadata_cache = metadata_cache
        self._fetch_manager = fetch_manager

    def handle_fetch(self, message: Any, listener_name: str = PLAINTEXT) -> Any | Awaitable[Any]:
        """The response, once ``min_bytes`` are there, an error occurred or ``max_wait`` has passed."""
        params = _fetch_params(message)
        context = self._fetch_manager.new_context(
            FetchMetadata(
                getattr(message, "session_id", NO_SESSION),
                getattr(message, "session_epoch", FINAL_EPOCH),
            ),
            self._asked(message),
            _forgotten(message),
            is_follower=params.is_from_follower,
            uses_topic_ids=message.__version__ >= _FIRST_VERSION_WITH_TOPIC_IDS,
        )
        admitted, refused = self._admit(context.requests)
        if not admitted:
            return self._fetch_response(message, context, refused, listener_name)
        return self._fetches.fetch(
            params,
            admitted,
            lambda results: self._fetch_response(
                message, context, results | refused, listener_name
            ),
        )

    def _asked(self, message: Any) -> dict[TopicPartition, FetchPartitionRequest]:
        """What a request names. A partition that is named twice counts once, as it was named last; so in Kafka."""
        asked = {}
        for topic in message.topics:
            topic_id: UUID | None = getattr(topic, "topic_id", None)
            name = topic.topic if hasattr(topic, "topic") else self._topic_name(topic_id)
            read_fields = _fetch_fields(item_class(type(topic), "partitions"))
            for partition in topic.partitions:
                key = TopicPartition(name, partition.partition)
                asked[key] = FetchPartitionRequest(key, topic_id, *read_fields(partition))
        return asked

    def _topic_name(self, topic_id: UUID | None) -> str:
        name = None if topic_id is None else self._metadata_cache.topic_name(topic_id)
        return unnamed_topic(topic_id) if name is None else name

    def _admit(self, requests: FetchRequests) -> tuple[FetchRequests, FetchResults]:
        """Which partitions the replicas are asked about, and the answer for the others."""
        contains = self._metadata_cache.contains
        refused = {
            key: FetchPartitionResult(
                key,
                ErrorCode.unknown_topic_id
                if is_unnamed(key)
                else ErrorCode.unknown_topic_or_partition,
            )
            for key in requests
            if not contains(key)
        }
        if not refused:
            return requests, refused
        return {key: asked for key, asked in requests.items() if key not in refused}, refused

    def _fetch_response(
        self, message: Any, context: FetchContext, results: FetchResults, listener_name: str
    ) -> Any:
        error, session_id, answered = context.answer(results)
        response = response_of(message)
        topic_class = item_class(response, "responses")
        partition_class = item_class(topic_class, "partitions")
        by_topic: dict[str, list[FetchPartitionResult]] = {}
        for key, result in answered.items():
            by_topic.setdefault(key.topic, []).append(result)
        topics = [
            {
                "topic": name,
                "topic_id": context.requests[partitions[0].topic_partition].topic_id,
                "partitions": tuple(
                    [_partition_data(partition_class, result) for result in partitions]
                ),
            }
            for name, partitions in by_topic.items()
        ]
        leaders = {result.current_leader_id for result in answered.values()}
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=error,
            session_id=session_id,
            responses=build_items(response, "responses", topics),
            **node_endpoints(response, leaders, self._metadata_cache, listener_name),
        )


def _forgotten(message: Any) -> ForgottenPartitions:
    """The partitions that leave the session."""
    return [
        (topic.topic if hasattr(topic, "topic") else topic.topic_id, number)
        for topic in getattr(message, "forgotten_topics_data", ())
        for number in topic.partitions
    ]


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
    is_consumer = replica_id in (CONSUMER_ID, DEBUGGING_CONSUMER_ID)
    isolation = (
        consumer_isolation(message.isolation_level) if is_consumer else FetchIsolation.LOG_END
    )
    max_bytes = min(message.max_bytes, FETCH_MAX_BYTES) if is_consumer else message.max_bytes
    return FetchParams(
        replica_id=replica_id,
        max_wait_ms=max(milliseconds(message.max_wait), 0),
        min_bytes=min(message.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        replica_epoch=-1 if state is None else state.replica_epoch,
        rack_id=getattr(message, "rack_id", None) if replica_id == CONSUMER_ID else None,
    )


def _partition_data(partition_class: type[Any], result: FetchPartitionResult) -> Any:
    """One partition of a fetch response."""
    if not (result.records or result.is_urgent):
        return _idle_partition_data(partition_class)(
            result.topic_partition.partition,
            result.high_watermark,
            result.last_stable_offset,
            result.log_start_offset,
            result.aborted_transactions is not None,
        )
    values = {
        "partition_index": result.topic_partition.partition,
        "error_code": result.error,
        "high_watermark": result.high_watermark,
        "last_stable_offset": result.last_stable_offset,
        "log_start_offset": result.log_start_offset,
        "aborted_transactions": _aborted(partition_class, result.aborted_transactions),
        "preferred_read_replica": result.preferred_read_replica,
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
def _idle_partition_data(partition_class: type[Any]) -> Callable[[int, int, int, int, bool], Any]:
    """Says that there is no news. Mostly that was said before, and what is immutable can be sent again."""

    @lru_cache(maxsize=1024)
    def idle(
        index: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        is_read_committed: bool,
    ) -> Any:
        return build(
            partition_class,
            partition_index=index,
            error_code=ErrorCode.none,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=log_start_offset,
            aborted_transactions=() if is_read_committed else None,
            records=b"",
        )

    return idle


def _aborted(
    partition_class: type[Any], transactions: tuple[AbortedTransaction, ...] | None
) -> tuple[Any, ...] | None:
    """The aborted transactions as a response has them; None for consumers that read all."""
    if transactions is None:
        return None
    if not transactions:
        return ()
    return build_items(
        partition_class,
        "aborted_transactions",
        (
            {"producer_id": transaction.producer_id, "first_offset": transaction.first_offset}
            for transaction in transactions
        ),
    )


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
