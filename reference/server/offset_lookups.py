"""Offsets by time and by leader epoch, for ListOffsets and OffsetForLeaderEpoch requests."""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.cluster.partition_reads import last_offset_for_leader_epoch, list_offset
from nemesis.reference.log.errors import KafkaStorageError, LogError, RecordError
from nemesis.reference.model import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEndOffset,
    FetchIsolation,
    ListOffsetsResult,
    TopicPartition,
)


class OffsetLookups:
    """Looks up offsets in the replicas of this broker. Each refusal becomes an error code."""

    def __init__(
        self,
        *,
        partition_of: Callable[[TopicPartition], Partition],
        note_storage_error: Callable[[KafkaStorageError], None],
    ) -> None:
        self._partition_of = partition_of
        self._note_storage_error = note_storage_error

    def list_offset(
        self,
        topic_partition: TopicPartition,
        timestamp: int,
        current_leader_epoch: int,
        replica_id: int,
        isolation: FetchIsolation,
    ) -> ListOffsetsResult:
        """Find an offset by time; see ``partition_reads.list_offset``."""
        try:
            partition = self._partition_of(topic_partition)
            return list_offset(partition, timestamp, current_leader_epoch, replica_id, isolation)
        except ReplicaError as error:
            return ListOffsetsResult(error.code)
        except KafkaStorageError as error:
            self._note_storage_error(error)
            return ListOffsetsResult(error.error_code)
        except (LogError, RecordError) as error:
            return ListOffsetsResult(error.error_code)

    def end_offset_for_epoch(
        self, topic_partition: TopicPartition, current_leader_epoch: int, leader_epoch: int
    ) -> tuple[ErrorCode, EpochEndOffset]:
        """Return where the epoch ends on the leader; −1/−1 if unknown or refused."""
        try:
            partition = self._partition_of(topic_partition)
            return ErrorCode.none, last_offset_for_leader_epoch(
                partition, current_leader_epoch, leader_epoch
            )
        except ReplicaError as error:
            return error.code, EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
