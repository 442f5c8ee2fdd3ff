"""Transaction coordinators as tests play them, for the leaders that ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from nemesis.reference.cluster.partition import Partition
from nemesis.reference.log.log_validator import AppendOrigin
from nemesis.reference.model import TopicPartition, TransactionalProducer
from nemesis.reference.protocol.record_batch import iter_batches
from nemesis.reference.server.transaction_verifications import TransactionVerifications


class Question(NamedTuple):
    """A verification that waits for its answer."""

    producer: TransactionalProducer
    partitions: frozenset[TopicPartition]
    knows_abortable: bool
    answer: asyncio.Future[Mapping[TopicPartition, ErrorCode]]

    def settle(self, error: ErrorCode = ErrorCode.none) -> None:
        """Give all partitions the same answer."""
        is_verified = error is ErrorCode.none
        self.answer.set_result({} if is_verified else dict.fromkeys(self.partitions, error))


class PlayedCoordinators:
    """Keeps each question until the test answers it."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def verify(
        self,
        producer: TransactionalProducer,
        partitions: Collection[TopicPartition],
        *,
        knows_abortable: bool,
    ) -> asyncio.Future[Mapping[TopicPartition, ErrorCode]]:
        answer: asyncio.Future[Mapping[TopicPartition, ErrorCode]] = asyncio.Future()
        self.questions.append(Question(producer, frozenset(partitions), knows_abortable, answer))
        return answer


def append_verified(partition: Partition, records: bytes) -> None:
    """Append a client's batch that its coordinator has confirmed."""
    header = next(iter_batches(records))
    guard = partition.leader_log.maybe_start_transaction_verification(
        header.producer_id, header.base_sequence, header.producer_epoch
    )
    partition.append_as_leader(records, 1, AppendOrigin.CLIENT, guard)


def verifications(
    partition_of: Callable[[TopicPartition], Partition],
    coordinators: PlayedCoordinators | None = None,
) -> TransactionVerifications:
    """Those of a broker with these coordinators; without, nothing is verified."""
    return TransactionVerifications(
        partition_of=partition_of,
        coordinators=coordinators or PlayedCoordinators(),
        is_enabled=coordinators is not None,
    )
