"""What clients and followers ask of a broker's replicas: append, fetch, offsets, ends of epochs.

Every refusal becomes an error code of its own partition; a request never fails as a whole. A log that fails
while appending takes its replica offline, since what it then holds is unknown; a medium that fails takes its whole log
directory. Append and fetch hand their results to
``respond`` and return what it makes of them: at once if nothing has to be waited for, as a future otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.partition_reads import (
    fetch_records,
    last_offset_for_leader_epoch,
    list_offset,
)
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.model import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEndOffset,
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    ListOffsetsResult,
    ProducePartitionResult,
    TopicPartition,
)
from nemesis.reference.server.delayed_fetch import (
    DelayedFetch,
    FetchRequests,
    FetchResults,
    is_worth_sending,
)
from nemesis.reference.server.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.server.delayed_produce import DelayedProduce, acknowledge
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.record_deletions import RecordDeletions
from nemesis.reference.server.replica_selector import preferred_read_replica
from nemesis.reference.trace import Tracer

_logger = logging.getLogger(__name__)

_VALID_ACKS = (-1, 0, 1)

ProduceResults = dict[TopicPartition, ProducePartitionResult]
Response = TypeVar("Response")


class ReplicaData(ABC):
    """The hosted partitions and the requests that wait for them. ``ReplicaManager`` fills it."""

    def __init__(
        self, config: KafkaConfig, *, tracer: Tracer, metadata_cache: MetadataCache
    ) -> None:
        self._config = config
        self._tracer = tracer
        self._metadata_cache = metadata_cache
        self._listener_name = config.listener_config.inter_broker_listener_name
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: set[TopicPartition] = set()
        self._delayed_produces = DelayedOperationPurgatory()
        self._delayed_fetches = DelayedOperationPurgatory()
        self.record_deletions = RecordDeletions(
            partition_of=self.partition,
            is_alive=metadata_cache.has_alive_broker,
            on_storage_error=self.handle_storage_error,
        )

    def partitions(self) -> Iterable[Partition]:
        """Every hosted replica."""
        return self._partitions.values()

    def is_hosted(self, topic_partition: TopicPartition) -> bool:
        """Whether this process was told of the replica, and serves it."""
        return topic_partition in self._partitions

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return the hosted replica; raises ReplicaError with what a client should be told."""
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self._offline:
            raise ReplicaError(ErrorCode.kafka_storage_error, f"{topic_partition} is offline")
        if self._metadata_cache.contains(topic_partition):
            raise ReplicaError(
                ErrorCode.not_leader_or_follower, f"{topic_partition} is not hosted here"
            )
        raise ReplicaError(
            ErrorCode.unknown_topic_or_partition, f"{topic_partition} is not known here"
        )

    @abstractmethod
    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """Stop serving a replica whose log failed."""

    @abstractmethod
    def note_storage_error(self, error: KafkaStorageError) -> None:
        """See to the log directory, if its medium has failed. Nothing changes before the caller is done."""

    def handle_storage_error(
        self, topic_partition: TopicPartition, error: KafkaStorageError
    ) -> None:
        """Stop serving a replica whose log failed, and see to its log directory."""
        _logger.error("%s: %s", topic_partition, error)
        self.mark_offline(topic_partition)
        self.note_storage_error(error)

    def complete_delayed_operations(self, topic_partition: TopicPartition) -> None:
        """Re-examine what waits for the partition; called after each of its changes."""
        self._delayed_produces.check_and_complete(topic_partition)
        self._delayed_fetches.check_and_complete(topic_partition)
        self.record_deletions.purgatory.check_and_complete(topic_partition)

    def append_records(
        self,
        *,
        timeout_ms: int,
        acks: int,
        entries: Mapping[TopicPartition, bytes],
        respond: Callable[[ProduceResults], Response],
    ) -> Response | asyncio.Future[Response]:
        """Append to the leaders here; with acks −1, wait until the ISR has it or ``timeout_ms`` has passed."""
        if acks not in _VALID_ACKS:
            refusal = ProducePartitionResult(ErrorCode.invalid_required_acks)
            return respond(dict.fromkeys(entries, refusal))
        results: ProduceResults = {}
        appended: dict[TopicPartition, LogAppendInfo] = {}
        for topic_partition, records in entries.items():
            outcome = self._append(topic_partition, records, acks)
            if isinstance(outcome, ProducePartitionResult):
                results[topic_partition] = outcome
            else:
                appended[topic_partition] = outcome
        if acks != -1:
            for topic_partition, info in appended.items():
                results[topic_partition] = acknowledge(self.partition(topic_partition), info, acks)
            return respond(results)
        delayed = DelayedProduce(appended, acks=acks, partition_of=self.partition)
        for topic_partition in appended:
            delayed.try_complete(topic_partition)
        if delayed.is_complete:
            return respond(results | delayed.results())
        return self._delayed_produces.watch(
            delayed,
            appended,
            timeout_s=timeout_ms / 1000,
            respond=lambda settled: respond(results | settled),
        )

    def _append(
        self, topic_partition: TopicPartition, records: bytes, acks: int
    ) -> LogAppendInfo | ProducePartitionResult:
        try:
            return self.partition(topic_partition).append_as_leader(records, acks)
        except ReplicaError as error:
            return ProducePartitionResult(error.code, error_message=str(error))
        except KafkaStorageError as error:
            self.handle_storage_error(topic_partition, error)
            return ProducePartitionResult(ErrorCode.kafka_storage_error)
        except (LogError, RecordError) as error:
            return ProducePartitionResult(error.error_code, error_message=str(error))

    def fetch(
        self,
        params: FetchParams,
        requests: FetchRequests,
        respond: Callable[[FetchResults], Response],
    ) -> Response | asyncio.Future[Response]:
        """Read, waiting up to ``max_wait_ms`` for ``min_bytes``; one result per request, in order."""
        results = self._read_all(params, requests, update_fetch_state=True)
        if params.max_wait_ms <= 0 or not requests or is_worth_sending(results.values(), params):
            return respond(results)
        delayed = DelayedFetch(params, requests, results, reader=self)
        is_complete = False
        for key in self._outdated(params, results):
            is_complete |= delayed.try_complete(key)
        if is_complete:
            return respond(delayed.results())
        return self._delayed_fetches.watch(
            delayed, requests, timeout_s=params.max_wait_ms / 1000, respond=respond
        )

    def _outdated(self, params: FetchParams, results: FetchResults) -> list[TopicPartition]:
        """What the first read of a request that waits does not say as a later one would."""
        if any(result.records for result in results.values()):
            return list(results)  # some had less room for what others took
        if not params.is_from_follower:
            return []
        return [  # its own progress moved the high watermark
            key
            for key, result in results.items()
            if self._partitions[key].leader_log.high_watermark != result.high_watermark
        ]

    def read_again(
        self, params: FetchParams, request: FetchPartitionRequest
    ) -> FetchPartitionResult:
        return self._read(
            params,
            request,
            max_bytes=request.max_bytes,
            min_one_message=True,
            update_fetch_state=False,
        )

    def read_all_again(self, params: FetchParams, requests: FetchRequests) -> FetchResults:
        return self._read_all(params, requests, update_fetch_state=False)

    def _read_all(
        self, params: FetchParams, requests: FetchRequests, *, update_fetch_state: bool
    ) -> FetchResults:
        results: FetchResults = {}
        remaining = params.max_bytes
        is_empty = True
        for key, request in requests.items():
            result = self._read(
                params,
                request,
                max_bytes=max(min(request.max_bytes, remaining), 0),
                min_one_message=is_empty,
                update_fetch_state=update_fetch_state,
            )
            results[key] = result
            if result.records:
                remaining -= len(result.records)
                is_empty = False
        return results

    def _read(
        self,
        params: FetchParams,
        request: FetchPartitionRequest,
        *,
        max_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> FetchPartitionResult:
        topic_partition = request.topic_partition
        try:
            partition = self.partition(topic_partition)
            if request.topic_id is not None and request.topic_id != partition.topic_id:
                return FetchPartitionResult(topic_partition, ErrorCode.inconsistent_topic_id)
            return fetch_records(
                partition,
                params,
                request,
                max_bytes=max_bytes,
                min_one_message=min_one_message,
                update_fetch_state=update_fetch_state,
                preferred_read_replica=self._selector(params) if params.rack_id else None,
            )
        except ReplicaError as error:
            return self._refused_fetch(topic_partition, error.code)
        except KafkaStorageError as error:
            self.note_storage_error(error)
            return FetchPartitionResult(topic_partition, error.error_code)
        except LogError as error:
            return FetchPartitionResult(topic_partition, error.error_code)

    def _selector(self, params: FetchParams) -> Callable[[Partition, int], int | None] | None:
        """How to find the replica that a consumer should read from; None where nobody is to be sent away."""
        rack_id = params.rack_id
        if not rack_id or self._config.replica_selector_class is None:
            return None
        return lambda partition, offset: preferred_read_replica(
            partition,
            rack_id,
            offset,
            lambda broker: self._metadata_cache.alive_broker_node(broker, self._listener_name),
        )

    def _refused_fetch(
        self, topic_partition: TopicPartition, code: ErrorCode
    ) -> FetchPartitionResult:
        """An error, with the leader that the asker should turn to if we know better (KIP-951)."""
        partition = self._partitions.get(topic_partition)
        if (
            code not in (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
            or partition is None
            or partition.leader_id is None
        ):
            return FetchPartitionResult(topic_partition, code)
        return FetchPartitionResult(
            topic_partition,
            code,
            current_leader_id=partition.leader_id,
            current_leader_epoch=partition.leader_epoch,
        )

    def list_offset(
        self,
        topic_partition: TopicPartition,
        timestamp: int,
        current_leader_epoch: int,
        replica_id: int,
    ) -> ListOffsetsResult:
        """Find an offset by time; see ``partition_reads.list_offset``."""
        try:
            partition = self.partition(topic_partition)
            return list_offset(partition, timestamp, current_leader_epoch, replica_id)
        except ReplicaError as error:
            return ListOffsetsResult(error.code)
        except KafkaStorageError as error:
            self.note_storage_error(error)
            return ListOffsetsResult(error.error_code)
        except LogError as error:
            return ListOffsetsResult(error.error_code)

    def end_offset_for_epoch(
        self, topic_partition: TopicPartition, current_leader_epoch: int, leader_epoch: int
    ) -> tuple[ErrorCode, EpochEndOffset]:
        """Where the epoch ends on the leader here; −1/−1 if unknown or refused."""
        try:
            partition = self.partition(topic_partition)
            return ErrorCode.none, last_offset_for_leader_epoch(
                partition, current_leader_epoch, leader_epoch
            )
        except ReplicaError as error:
            return error.code, EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
