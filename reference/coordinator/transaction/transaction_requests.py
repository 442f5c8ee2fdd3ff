"""What requests about transactions contain, in any version, and what they are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.transaction.transaction_metadata import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
)
from nemesis.reference.model import TopicPartition

ErrorCallback = Callable[[ErrorCode], None]


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer that wants to begin, or to go on."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    """Of a producer that goes on."""


@dataclass(frozen=True, slots=True)
class InitProducerIdResult:
    """The producer's id and epoch, or an error."""

    error: ErrorCode = ErrorCode.none
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionOverview:
    """A transactional id as ListTransactions reports it."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionList:
    """The answer to a ListTransactions."""

    error: ErrorCode = ErrorCode.none
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[TransactionOverview, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id as DescribeTransactions reports it."""

    transactional_id: str
    error: ErrorCode = ErrorCode.none
    state: str = ""
    timeout_ms: int = 0
    start_timestamp: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: frozenset[TopicPartition] = frozenset()
