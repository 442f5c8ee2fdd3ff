"""The DeleteRecords requests of a broker, and those of them that wait for followers.

Source: kafka.server.ReplicaManager.deleteRecords of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.record_deletion import delete_records_on_leader
from nemesis.reference.delayed_operations import DelayedOperationPurgatory
from nemesis.reference.log.errors import KafkaStorageError, LogError
from nemesis.reference.model import INTERNAL_TOPICS, TopicPartition
from nemesis.reference.server.delayed_delete_records import (
    DelayedDeleteRecords,
    DeleteRecordsPartitionResult,
    DeleteRecordsResults,
)

Response = TypeVar("Response")


class RecordDeletions:
    """Raises log start offsets on the leaders here, and answers when all live replicas have followed."""

    def __init__(
        self,
        *,
        partition_of: Callable[[TopicPartition], Partition],
        is_alive: Callable[[int], bool],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        self._partition_of = partition_of
        self._is_alive = is_alive
        self._on_storage_error = on_storage_error
        self.purgatory = DelayedOperationPurgatory[TopicPartition]()

    def delete_records(
        self,
        *,
        timeout_ms: int,
        offsets: Mapping[TopicPartition, int],
        respond: Callable[[DeleteRecordsResults], Response],
    ) -> Response | asyncio.Future[Response]:
        """Delete below these offsets (−1: the high watermark); wait for the followers up to ``timeout_ms``."""
        refused: DeleteRecordsResults = {}
        required: dict[TopicPartition, int] = {}
        for key, offset in offsets.items():
            outcome = self._delete(key, offset)
            if isinstance(outcome, DeleteRecordsPartitionResult):
                refused[key] = outcome
            else:
                required[key] = outcome
        delayed = DelayedDeleteRecords(
            required, partition_of=self._partition_of, is_alive=self._is_alive
        )
        for key in required:
            delayed.try_complete(key)
        if delayed.is_complete or timeout_ms <= 0:
            return respond(refused | delayed.results())
        return self.purgatory.watch(
            delayed,
            required,
            timeout_s=timeout_ms / 1000,
            respond=lambda results: respond(refused | results),
        )

    def _delete(self, key: TopicPartition, offset: int) -> int | DeleteRecordsPartitionResult:
        if key.topic in INTERNAL_TOPICS:
            return DeleteRecordsPartitionResult(ErrorCode.invalid_topic_exception)
        try:
            return delete_records_on_leader(self._partition_of(key), offset)
        except ReplicaError as error:
            return DeleteRecordsPartitionResult(error.code)
        except KafkaStorageError as error:
            self._on_storage_error(key, error)
            return DeleteRecordsPartitionResult(error.error_code)
        except LogError as error:
            return DeleteRecordsPartitionResult(error.error_code)
