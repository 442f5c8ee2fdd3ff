"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete.

OffsetFetch asks for one group up to version 7, for several from version 8 on. Version 0 of both is about offsets that
Kafka has in ZooKeeper; here they are those of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_coordinator import GroupCoordinator
from nemesis.reference.coordinator.group.group_offsets import OffsetAndMetadata
from nemesis.reference.coordinator.group.group_results import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    OffsetFetchResult,
)
from nemesis.reference.coordinator.group.offset_commits import OffsetCommit
from nemesis.reference.model import TopicPartition, TransactionalProducer
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.apis.groups import answer_of
from nemesis.reference.server.kafka_request_handler import Later
from nemesis.reference.server.metadata_cache import MetadataCache

_DEFAULT_TIMESTAMP: Final = -1
_DEFAULT_RETENTION_MS: Final = -1
_NO_EPOCH: Final = -1
_FIRST_FETCH_VERSION_WITH_ERROR: Final = 2
_FIRST_TXN_VERSION_WITH_LOADING: Final = 2
_FIRST_TXN_VERSION_WITH_ABORTABLE: Final = 4
_Errors = Mapping[TopicPartition, ErrorCode]


class GroupOffsetApis:
    """Needs the coordinator of this broker, and the cache to refuse partitions that do not exist."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        metadata_cache: MetadataCache,
        wall_clock: WallClock,
    ) -> None:
        self._coordinator = coordinator
        self._metadata_cache = metadata_cache
        self._wall_clock = wall_clock

    def handle_offset_commit(self, message: Any) -> Any | Later:
        """The response once the offsets are committed in the log."""
        generation_id = getattr(message, "generation_id_or_member_epoch", NO_GENERATION)
        return self._commit(message, generation_id, None)

    def handle_txn_offset_commit(self, message: Any) -> Any | Later:
        """The response once the offsets are in the log; they count once the transaction is committed."""
        generation_id = getattr(message, "generation_id", NO_GENERATION)
        producer = TransactionalProducer(
            message.transactional_id, message.producer_id, message.producer_epoch
        )
        return self._commit(message, generation_id, producer)

    def _commit(
        self, message: Any, generation_id: int, producer: TransactionalProducer | None
    ) -> Any | Later:
        offsets = self._offsets(message)
        unknown = ErrorCode.unknown_topic_or_partition
        refused = {key: unknown for key in offsets if not self._metadata_cache.contains(key)}
        accepted = {key: offset for key, offset in offsets.items() if key not in refused}
        if not accepted:
            return _response(message, refused)
        request = OffsetCommit(
            message.group_id,
            generation_id,
            getattr(message, "member_id", UNKNOWN_MEMBER_ID),
            getattr(message, "group_instance_id", None),
            accepted,
            producer,
            producer is not None and message.__version__ >= _FIRST_TXN_VERSION_WITH_ABORTABLE,
        )

        def response(errors: _Errors) -> Any:
            known = errors if producer is None else _known_errors(errors, message.__version__)
            return _response(message, {**refused, **known})

        return answer_of(partial(self._coordinator.commit_offsets, request), response)

    def _offsets(self, message: Any) -> dict[TopicPartition, OffsetAndMetadata]:
        now_ms = self._wall_clock()
        default = timedelta(milliseconds=_DEFAULT_RETENTION_MS)
        retention_ms = milliseconds(getattr(message, "retention_time", default))
        expires = None if retention_ms == _DEFAULT_RETENTION_MS else now_ms + retention_ms
        return {
            TopicPartition(topic.name, item.partition_index): OffsetAndMetadata(
                item.committed_offset,
                getattr(item, "committed_leader_epoch", _NO_EPOCH),
                item.committed_metadata or "",
                _commit_timestamp(item, now_ms),
                expires,
            )
            for topic in message.topics
            for item in topic.partitions
        }

    def handle_offset_fetch(self, message: Any) -> Any:
        response = response_of(message)
        require_stable = getattr(message, "require_stable", False)
        groups = getattr(message, "groups", None)
        if groups is not None:
            group_class = item_class(response, "groups")
            items = (
                self._fetched(group_class, group, require_stable=require_stable) for group in groups
            )
            return build(
                response, throttle_time=NO_THROTTLE, groups=build_items(response, "groups", items)
            )
        fetched = self._fetched(response, message, require_stable=require_stable)
        if message.__version__ < _FIRST_FETCH_VERSION_WITH_ERROR:
            fetched["topics"] = self._with_error(response, message, fetched)
        return build(response, throttle_time=NO_THROTTLE, **fetched)

    def _fetched(self, result_class: type[Any], group: Any, require_stable: bool) -> dict[str, Any]:
        partitions = (
            None
            if group.topics is None
            else [
                TopicPartition(topic.name, index)
                for topic in group.topics
                for index in topic.partition_indexes
            ]
        )
        error, results = self._coordinator.fetch_offsets(
            group.group_id, partitions, require_stable=require_stable
        )
        return {
            "group_id": group.group_id,
            "error_code": error,
            "topics": _fetched_topics(result_class, results),
        }

    def _with_error(
        self, response: type[Any], message: Any, fetched: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """The topics of a response that has no field for the error of the request: each partition has it."""
        error = fetched["error_code"]
        if error is ErrorCode.none:
            topics: tuple[Any, ...] = fetched["topics"]
            return topics
        failed = OffsetFetchResult(error=error)
        return _fetched_topics(
            response,
            {
                TopicPartition(topic.name, index): failed
                for topic in message.topics
                for index in topic.partition_indexes
            },
        )

    def handle_offset_delete(self, message: Any) -> Any:
        partitions = [
            TopicPartition(topic.name, item.partition_index)
            for topic in message.topics
            for item in topic.partitions
        ]
        known = [key for key in partitions if self._metadata_cache.contains(key)]
        error, errors = self._coordinator.delete_offsets(message.group_id, known)
        unknown = dict.fromkeys(partitions, ErrorCode.unknown_topic_or_partition)
        return _response(
            message, {} if error is not ErrorCode.none else unknown | dict(errors), error
        )


def _known_errors(errors: _Errors, version: int) -> _Errors:
    """The errors for the producer of a TxnOffsetCommit: an old one does not expect a coordinator that loads."""
    if version >= _FIRST_TXN_VERSION_WITH_LOADING:
        return errors
    not_available = ErrorCode.coordinator_not_available
    loading = ErrorCode.coordinator_load_in_progress
    return {key: not_available if error is loading else error for key, error in errors.items()}


def _commit_timestamp(item: Any, now_ms: int) -> int:
    """Version 1 may name it."""
    named = int(getattr(item, "commit_timestamp", _DEFAULT_TIMESTAMP))
    return now_ms if named == _DEFAULT_TIMESTAMP else named


def _by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    topics: dict[str, list[TopicPartition]] = {}
    for key in keys:
        topics.setdefault(key.topic, []).append(key)
    return topics


def _response(message: Any, errors: _Errors, error: ErrorCode = ErrorCode.none) -> Any:
    response = response_of(message)
    topic_class = item_class(response, "topics")
    topics = (
        {
            "name": topic,
            "partitions": build_items(
                topic_class,
                "partitions",
                ({"partition_index": key.partition, "error_code": errors[key]} for key in keys),
            ),
        }
        for topic, keys in _by_topic(errors).items()
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=error,
        topics=build_items(response, "topics", topics),
    )


def _fetched_topics(
    result_class: type[Any], results: Mapping[TopicPartition, OffsetFetchResult]
) -> tuple[Any, ...]:
    topic_class = item_class(result_class, "topics")
    topics = (
        {
            "name": topic,
            "partitions": build_items(
                topic_class, "partitions", (_fetched_partition(key, results[key]) for key in keys)
            ),
        }
        for topic, keys in _by_topic(results).items()
    )
    return build_items(result_class, "topics", topics)


def _fetched_partition(key: TopicPartition, result: OffsetFetchResult) -> dict[str, Any]:
    return {
        "partition_index": key.partition,
        "committed_offset": result.offset,
        "committed_leader_epoch": result.leader_epoch,
        "metadata": result.metadata,
        "error_code": result.error,
    }
