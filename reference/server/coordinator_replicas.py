"""The replicas of this broker as a coordinator reaches them; implements ``CoordinatorLogs``.

Every call names the leader epoch in which the coordinator believes that this broker leads. In another one nothing is
read or written: what a coordinator of an older epoch does late has no effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.coordinator.coordinator_logs import LogRead, OnVerified
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.log.producer_state_entry import NO_SEQUENCE
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.server.record_appends import ProduceResults, RecordAppends
from nemesis.reference.server.replica_fetching import OnStorageError
from nemesis.reference.server.transaction_verifications import (
    TransactionVerifications,
    Verified,
)

_logger = logging.getLogger(__name__)


class CoordinatorReplicas:
    """Appends go through the same purgatory as those of clients."""

    def __init__(
        self,
        appends: RecordAppends,
        *,
        partition_of: Callable[[TopicPartition], Partition],
        on_storage_error: OnStorageError,
        verifications: TransactionVerifications,
    ) -> None:
        """``partition_of`` raises ReplicaError for a partition that is not hosted."""
        self._verifications = verifications
        self._appends = appends
        self._partition_of = partition_of
        self._on_storage_error = on_storage_error

    def append(
        self,
        topic_partition: TopicPartition,
        leader_epoch: int,
        records: bytes,
        *,
        timeout_ms: int,
        on_appended: Callable[[ProducePartitionResult], None],
        guard: VerificationGuard | None = None,
    ) -> None:
        if self._led(topic_partition, leader_epoch) is None:
            on_appended(ProducePartitionResult(ErrorCode.not_leader_or_follower))
            return

        def respond(results: ProduceResults) -> None:
            on_appended(results[topic_partition])

        answer: object = self._appends.append_records(
            timeout_ms=timeout_ms,
            acks=-1,
            entries={topic_partition: records},
            respond=respond,
            origin=AppendOrigin.COORDINATOR,
            guards={} if guard is None else {topic_partition: guard},
        )
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(_log_failure)

    def verify_transaction(
        self,
        topic_partition: TopicPartition,
        producer: TransactionalProducer,
        on_verified: OnVerified,
        *,
        knows_abortable: bool,
    ) -> None:
        def report(verified: Verified) -> None:
            error = verified.errors.get(topic_partition, ErrorCode.none)
            on_verified(error, verified.guards.get(topic_partition))

        outcome = self._verifications.verify(
            producer, {topic_partition: NO_SEQUENCE}, knows_abortable=knows_abortable
        )
        if isinstance(outcome, Verified):
            report(outcome)
        else:
            outcome.add_done_callback(lambda done: report(done.result()))

    def append_unacknowledged(
        self, topic_partition: TopicPartition, leader_epoch: int, records: bytes
    ) -> bool:
        if self._led(topic_partition, leader_epoch) is None:
            return False
        return (
            self._appends.append_records(
                timeout_ms=0,
                acks=0,
                entries={topic_partition: records},
                respond=lambda results: results[topic_partition].error is ErrorCode.none,
                origin=AppendOrigin.COORDINATOR,
            )
            is True
        )

    def read(
        self, topic_partition: TopicPartition, leader_epoch: int, offset: int, max_bytes: int
    ) -> LogRead | None:
        partition = self._led(topic_partition, leader_epoch)
        if partition is None:
            return None
        log = partition.leader_log
        start, end = max(offset, log.log_start_offset), log.log_end_offset
        if start >= end:
            return LogRead(b"", start, is_end=True)
        try:
            records = log.read(start, max_bytes, end, min_one_message=True)
        except KafkaStorageError as error:
            self._on_storage_error(topic_partition, error)
            return None
        next_offset = max((header.last_offset + 1 for header in iter_batches(records)), default=end)
        return LogRead(records, next_offset, next_offset >= end)

    def _led(self, topic_partition: TopicPartition, leader_epoch: int) -> Partition | None:
        """The partition, if this broker leads it in the epoch."""
        try:
            partition = self._partition_of(topic_partition)
        except ReplicaError:
            return None
        is_led = partition.is_leader and partition.log is not None
        return partition if is_led and partition.leader_epoch == leader_epoch else None


def _log_failure(done: asyncio.Future[Any]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _logger.error("what was to follow an append has failed", exc_info=error)
