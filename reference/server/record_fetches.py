"""The fetch requests of followers and consumers, and those of them that wait for more records.

Each refusal becomes an error code of its own partition; a request never fails as a whole. The results go to
``respond``, and the request returns what ``respond`` returns: at once if nothing has to be waited for, as a future
otherwise.

Source: kafka.server.ReplicaManager.fetchMessages of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.partition_reads import fetch_records
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.log.errors import KafkaStorageError, LogError
from nemesis.reference.model import (
    FetchParams,
    FetchPartitionRequest,
    FetchPartitionResult,
    TopicPartition,
)
from nemesis.reference.server.delayed_fetch import (
    DelayedFetch,
    FetchRequests,
    FetchResults,
    is_worth_sending,
)
from nemesis.reference.server.hosted_partitions import HostedPartitions
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_selector import preferred_read_replica

Response = TypeVar("Response")


class RecordFetches:
    """Reads from the replicas of this broker. Implements ``delayed_fetch.FetchReader``."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        hosted: HostedPartitions,
        metadata_cache: MetadataCache,
        note_storage_error: Callable[[KafkaStorageError], None],
    ) -> None:
        self._config = config
        self._listener_name = config.listener_config.inter_broker_listener_name
        self._hosted = hosted
        self._metadata_cache = metadata_cache
        self._note_storage_error = note_storage_error
        self.purgatory = DelayedOperationPurgatory[TopicPartition]()

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
        return self.purgatory.watch(
            delayed, requests, timeout_s=params.max_wait_ms / 1000, respond=respond
        )

    def _outdated(self, params: FetchParams, results: FetchResults) -> list[TopicPartition]:
        """Return the partitions whose first result may differ from that of a later read."""
        if any(result.records for result in results.values()):
            return list(results)  # some had less room for what others took
        if not params.is_from_follower:
            return []
        return [  # its own progress moved the high watermark
            key
            for key, result in results.items()
            if self._hosted.partitions[key].leader_log.high_watermark != result.high_watermark
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
            partition = self._hosted.partition(topic_partition)
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
            self._note_storage_error(error)
            return FetchPartitionResult(topic_partition, error.error_code)
        except LogError as error:
            return FetchPartitionResult(topic_partition, error.error_code)

    def _selector(self, params: FetchParams) -> Callable[[Partition, int], int | None] | None:
        """Return how to choose the replica for a consumer; None if every consumer reads from the leader."""
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
        """Return an error, with the current leader if this broker knows it (KIP-951)."""
        partition = self._hosted.partitions.get(topic_partition)
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
