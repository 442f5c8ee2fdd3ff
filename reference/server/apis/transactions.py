"""WriteTxnMarkers and DescribeProducers: transactions as the leaders of partitions handle them.

A transaction coordinator sends WriteTxnMarkers to the leaders of the partitions of a transaction when it has decided.
The markers of a request are appended in its sequence, and acknowledged when the ISR has them. Several markers of one
producer share an answer, as in Kafka: the last error of a partition counts. A marker in ``__consumer_offsets`` ends the
pending offset commits of its transaction before it is answered.

Source: kafka.server.KafkaApis (handleWriteTxnMarkersRequest, handleDescribeProducersRequest) of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final, Protocol

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.producer_state_entry import ProducerStateEntry
from nemesis.reference.model import GROUP_METADATA_TOPIC_NAME, TopicPartition
from nemesis.reference.ports import WallClock
from nemesis.reference.protocol.control_records import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_batch,
)
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.server.hosted_partitions import HostedPartitions
from nemesis.reference.server.record_appends import ProduceResults, RecordAppends

REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of ``request.timeout.ms``."""

Errors = Mapping[TopicPartition, ErrorCode]


class OffsetsCompletion(Protocol):
    """Ends the pending offset commits of a transaction."""

    def on_transaction_completed(
        self, partition: int, producer_id: int, marker_offset: int, *, is_commit: bool
    ) -> None:
        """The marker of the transaction is in the log of an offsets partition."""


class TransactionApis:
    """Needs the replicas of this broker, and the coordinator of the groups that these contain."""

    def __init__(
        self,
        appends: RecordAppends,
        hosted: HostedPartitions,
        groups: OffsetsCompletion,
        wall_clock: WallClock,
    ) -> None:
        self._appends = appends
        self._hosted = hosted
        self._groups = groups
        self._wall_clock = wall_clock

    def handle_write_txn_markers(self, message: Any) -> Any | Awaitable[Any]:
        """The response, once each marker is in the ISR, was refused, or has timed out."""
        answers = [self._write(marker) for marker in message.markers]
        if any(isinstance(answer, asyncio.Future) for answer in answers):
            return _when_written(message, answers)
        return _markers_response(message, answers)

    def _write(self, marker: Any) -> Errors | asyncio.Future[Errors]:
        """Append one marker to the partitions that it names; return the error of each, perhaps later."""
        keys = _partitions_of(marker)
        refused = dict.fromkeys(
            (key for key in keys if not self._has_log(key)), ErrorCode.unknown_topic_or_partition
        )
        decision = (
            ControlRecordType.COMMIT if marker.transaction_result else ControlRecordType.ABORT
        )
        batch = end_transaction_batch(
            marker.producer_id,
            marker.producer_epoch,
            EndTransactionMarker(decision, marker.coordinator_epoch),
            self._wall_clock(),
        )

        def respond(results: ProduceResults) -> Errors:
            self._complete_offsets(marker, results)
            return refused | {key: result.error for key, result in results.items()}

        return self._appends.append_records(
            timeout_ms=REQUEST_TIMEOUT_MS,
            acks=-1,
            entries=dict.fromkeys((key for key in keys if key not in refused), batch),
            respond=respond,
            origin=AppendOrigin.COORDINATOR,
        )

    def _complete_offsets(self, marker: Any, results: ProduceResults) -> None:
        for (topic, number), result in results.items():
            if topic == GROUP_METADATA_TOPIC_NAME and result.error is ErrorCode.none:
                self._groups.on_transaction_completed(
                    number,
                    marker.producer_id,
                    result.base_offset,
                    is_commit=marker.transaction_result,
                )

    def _has_log(self, key: TopicPartition) -> bool:
        partition = self._hosted.partitions.get(key)
        return partition is not None and partition.log is not None

    def handle_describe_producers(self, message: Any) -> Any:
        response = response_of(message)
        topic_class = item_class(response, "topics")
        topics = [
            {
                "name": topic.name,
                "partitions": build_items(
                    topic_class,
                    "partitions",
                    (self._described(topic_class, topic.name, n) for n in topic.partition_indexes),
                ),
            }
            for topic in message.topics
        ]
        return build(
            response, throttle_time=NO_THROTTLE, topics=build_items(response, "topics", topics)
        )

    def _described(self, topic_class: type[Any], topic: str, number: int) -> dict[str, Any]:
        error, message = ErrorCode.none, None
        producers: Mapping[int, ProducerStateEntry] = {}
        try:
            log = self._hosted.partition(TopicPartition(topic, number)).leader_log
            producers = log.producer_state_manager.active_producers
        except ReplicaError as refusal:
            error, message = refusal.code, str(refusal)
        partition_class = item_class(topic_class, "partitions")
        return {
            "partition_index": number,
            "error_code": error,
            "error_message": message,
            "active_producers": build_items(
                partition_class, "active_producers", map(_producer, producers.values())
            ),
        }


async def _when_written(message: Any, answers: list[Errors | asyncio.Future[Errors]]) -> Any:
    return _markers_response(
        message,
        [await answer if isinstance(answer, asyncio.Future) else answer for answer in answers],
    )


def _partitions_of(marker: Any) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number)
        for topic in marker.topics
        for number in topic.partition_indexes
    ]


def _markers_response(message: Any, answers: list[Any]) -> Any:
    """The errors by producer, each producer once."""
    response = response_of(message)
    by_producer: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker, errors in zip(message.markers, answers, strict=True):
        by_producer.setdefault(marker.producer_id, {}).update(errors)
    return build(
        response,
        markers=build_items(
            response,
            "markers",
            (
                {"producer_id": producer_id, "topics": _topics(response, errors)}
                for producer_id, errors in by_producer.items()
            ),
        ),
    )


def _topics(response: type[Any], errors: Errors) -> tuple[Any, ...]:
    marker_class = item_class(response, "markers")
    topic_class = item_class(marker_class, "topics")
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for key, error in errors.items():
        item = {"partition_index": key.partition, "error_code": error}
        by_topic.setdefault(key.topic, []).append(item)
    return build_items(
        marker_class,
        "topics",
        (
            {"name": name, "partitions": build_items(topic_class, "partitions", items)}
            for name, items in by_topic.items()
        ),
    )


def _producer(entry: ProducerStateEntry) -> dict[str, Any]:
    return {
        "producer_id": entry.producer_id,
        "producer_epoch": entry.producer_epoch,
        "last_sequence": entry.last_sequence,
        "last_timestamp": entry.last_timestamp,
        "coordinator_epoch": entry.coordinator_epoch,
        "current_txn_start_offset": entry.current_txn_first_offset,
    }
