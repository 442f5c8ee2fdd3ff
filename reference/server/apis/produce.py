"""Produce. Records pass as opaque bytes: a batch's header is read, nothing more.

A batch that opens a transaction is appended once its coordinator has confirmed that the transaction has the partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    PLAINTEXT,
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.protocol.record_batch import (
    RecordBatchHeader,
    RecordError,
    iter_batches,
)
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import (
    NO_THROTTLE,
    milliseconds,
    response_of,
    timestamp,
)
from nemesis.reference.server.apis.current_leaders import current_leader, node_endpoints
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.record_appends import ProduceResults, RecordAppends
from nemesis.reference.server.transaction_verifications import (
    TransactionVerifications,
    Verified,
    refused_produce,
)

VALID_ACKS: Final = (-1, 0, 1)

_FIRST_PRODUCE_VERSION_OF_FORMAT_2: Final = 3
_FIRST_PRODUCE_VERSION_WITH_ZSTD: Final = 7
_FIRST_PRODUCE_VERSION_WITH_ABORTABLE: Final = 11
_ZSTD: Final = 4
_CODEC_BITS: Final = 0x07
_NOT_LEADER: Final = (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)


class ProduceApis:
    """Needs the replicas, the verification of transactions, and the cache for current leaders."""

    def __init__(
        self,
        appends: RecordAppends,
        verifications: TransactionVerifications,
        metadata_cache: MetadataCache,
    ) -> None:
        self._appends = appends
        self._verifications = verifications
        self._metadata_cache = metadata_cache

    def handle_produce(self, message: Any, listener_name: str = PLAINTEXT) -> Any | Awaitable[Any]:
        """The response, or None for acks=0; an error of acks=0 closes the connection, as Kafka does."""
        refused: dict[TopicPartition, ProducePartitionResult] = {}
        entries: dict[TopicPartition, bytes] = {}
        transactional: dict[TopicPartition, RecordBatchHeader] = {}
        for topic in message.topic_data:
            for partition in topic.partition_data:
                topic_partition = TopicPartition(topic.name, partition.index)
                batch = self._accepted(message, topic_partition, partition.records)
                if isinstance(batch, ErrorCode):
                    refused[topic_partition] = ProducePartitionResult(batch)
                    continue
                entries[topic_partition] = partition.records
                if batch.is_transactional:
                    transactional[topic_partition] = batch
        if not entries:
            return self._answer_produce(message, refused, listener_name)
        if not transactional:
            return self._append(message, entries, {}, refused, listener_name)
        producer = _transactional_producer(message, transactional)
        if isinstance(producer, ErrorCode):
            refusal = ProducePartitionResult(producer)
            results = dict.fromkeys([*entries, *refused], refusal)
            return self._answer_produce(message, results, listener_name)
        verified = self._verifications.verify(
            producer,
            {key: batch.base_sequence for key, batch in transactional.items()},
            knows_abortable=message.__version__ >= _FIRST_PRODUCE_VERSION_WITH_ABORTABLE,
        )
        if isinstance(verified, Verified):
            return self._append_verified(message, entries, verified, refused, listener_name)
        return self._append_later(message, entries, verified, refused, listener_name)

    def _append(
        self,
        message: Any,
        entries: Mapping[TopicPartition, bytes],
        guards: Mapping[TopicPartition, VerificationGuard],
        refused: ProduceResults,
        listener_name: str,
    ) -> Any | asyncio.Future[Any]:
        return self._appends.append_records(
            timeout_ms=milliseconds(message.timeout),
            acks=message.acks,
            entries=entries,
            respond=lambda results: self._answer_produce(message, refused | results, listener_name),
            guards=guards,
        )

    def _append_verified(
        self,
        message: Any,
        entries: Mapping[TopicPartition, bytes],
        verified: Verified,
        refused: ProduceResults,
        listener_name: str,
    ) -> Any | asyncio.Future[Any]:
        errors, guards = verified
        refused = refused | {key: refused_produce(error) for key, error in errors.items()}
        entries = {key: records for key, records in entries.items() if key not in errors}
        return self._append(message, entries, guards, refused, listener_name)

    async def _append_later(
        self,
        message: Any,
        entries: Mapping[TopicPartition, bytes],
        verified: asyncio.Future[Verified],
        refused: ProduceResults,
        listener_name: str,
    ) -> Any:
        answer = self._append_verified(message, entries, await verified, refused, listener_name)
        return await answer if isinstance(answer, asyncio.Future) else answer

    def _answer_produce(
        self,
        message: Any,
        results: dict[TopicPartition, ProducePartitionResult],
        listener_name: str,
    ) -> Any:
        if message.acks == 0:
            errors = {tp: r.error for tp, r in results.items() if r.error is not ErrorCode.none}
            if errors:
                raise CloseConnectionError(f"produce with acks=0 failed: {errors}")
            return None
        return self._produce_response(message, results, listener_name)

    def _accepted(
        self, message: Any, topic_partition: TopicPartition, records: bytes | None
    ) -> RecordBatchHeader | ErrorCode:
        """Return the header of a partition's batch, or why it is refused before any replica is asked."""
        if message.acks not in VALID_ACKS:
            return ErrorCode.invalid_required_acks
        if message.__version__ < _FIRST_PRODUCE_VERSION_OF_FORMAT_2:
            return ErrorCode.unsupported_for_message_format
        if not self._metadata_cache.contains(topic_partition):
            return ErrorCode.unknown_topic_or_partition
        return _only_batch(records or b"", message.__version__)

    def _produce_response(
        self,
        message: Any,
        results: dict[TopicPartition, ProducePartitionResult],
        listener_name: str,
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
                if result.log_append_time >= 0:
                    values["log_append_time"] = timestamp(result.log_append_time)
                if result.error in _NOT_LEADER:
                    info = self._metadata_cache.partition_info(topic_partition)
                    if info is not None:
                        leaders.add(info.leader)
                        values |= current_leader(partition_class, info.leader, info.leader_epoch)
                partitions.append(build(partition_class, **values))
            topics.append({"name": topic.name, "partition_responses": tuple(partitions)})
        return build(
            response,
            responses=build_items(response, "responses", topics),
            throttle_time=NO_THROTTLE,
            **node_endpoints(response, leaders, self._metadata_cache, listener_name),
        )


def _transactional_producer(
    message: Any, batches: Mapping[TopicPartition, RecordBatchHeader]
) -> TransactionalProducer | ErrorCode:
    """Return the producer of a request with transactional batches, or why all of it is refused."""
    if message.transactional_id is None:
        return ErrorCode.transactional_id_authorization_failed
    producers = {(batch.producer_id, batch.producer_epoch) for batch in batches.values()}
    if len(producers) > 1:
        return ErrorCode.invalid_producer_id_mapping
    return TransactionalProducer(message.transactional_id, *producers.pop())


def _only_batch(records: bytes, version: int) -> RecordBatchHeader | ErrorCode:
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
    return batch
