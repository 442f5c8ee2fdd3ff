"""Verifies that partitions are in transactions before transactional batches are appended (KIP-890).

A producer with an open transaction in a log has been verified there. For any other, the log makes a guard, then the
coordinator is asked, then the batch is appended with the guard. No request handler waits meanwhile.

Source: kafka.server.ReplicaManager (maybeStartTransactionVerificationForPartitions, handleProduceAppend) of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)

Errors = Mapping[TopicPartition, ErrorCode]
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
"""Older producers may not retry a Produce that has one of these errors."""


class TransactionCoordinators(Protocol):
    """Knows which partitions are in transactions."""

    def verify(
        self,
        producer: TransactionalProducer,
        partitions: Collection[TopicPartition],
        *,
        knows_abortable: bool,
    ) -> asyncio.Future[Errors]:
        """Return the errors of those partitions that are not in the transaction of the producer."""
        ...


class Verified(NamedTuple):
    """The partitions that may not be appended to, and the guards of those with a verification."""

    errors: Errors
    guards: Mapping[TopicPartition, VerificationGuard]


class TransactionVerifications:
    """Needs the replicas of this broker for guards, and the coordinators."""

    def __init__(
        self,
        *,
        partition_of: Callable[[TopicPartition], Partition],
        coordinators: TransactionCoordinators,
        is_enabled: bool,
    ) -> None:
        """``partition_of`` raises ReplicaError for a partition that is not hosted."""
        self._partition_of = partition_of
        self._coordinators = coordinators
        self._is_enabled = is_enabled

    def verify(
        self,
        producer: TransactionalProducer,
        sequences: Mapping[TopicPartition, int],
        *,
        knows_abortable: bool,
    ) -> Verified | asyncio.Future[Verified]:
        """Verify the partitions of batches, given by their first sequence numbers; at once if no coordinator is asked.

        ``knows_abortable`` is whether the client understands TRANSACTION_ABORTABLE.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        for key, sequence in sequences.items() if self._is_enabled else ():
            try:
                log = self._partition_of(key).leader_log
            except ReplicaError as error:
                errors[key] = error.code
                continue
            guard = log.maybe_start_transaction_verification(
                producer.producer_id, sequence, producer.epoch
            )
            if guard is not None:
                guards[key] = guard
        if not guards:
            return Verified(errors, guards)
        verified: asyncio.Future[Verified] = asyncio.get_running_loop().create_future()

        def on_answer(answer: asyncio.Future[Errors]) -> None:
            if not verified.done() and not answer.cancelled():
                verified.set_result(Verified({**errors, **answer.result()}, guards))

        answer = self._coordinators.verify(producer, guards, knows_abortable=knows_abortable)
        answer.add_done_callback(on_answer)
        return verified


def refused_produce(error: ErrorCode) -> ProducePartitionResult:
    """Return the result of a Produce for a partition that is not verified.

    NOT_ENOUGH_REPLICAS makes every producer retry, without looking for another leader.
    """
    if error is ErrorCode.invalid_txn_state:
        text = "Partition was not added to the transaction"
        return ProducePartitionResult(error, error_message=text)
    if error in _RETRIABLE:
        text = (
            "Unable to verify the partition has been added to the transaction."
            f" Underlying error: {error.name.upper()}"
        )
        return ProducePartitionResult(ErrorCode.not_enough_replicas, error_message=text)
    return ProducePartitionResult(error)
