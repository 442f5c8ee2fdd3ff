"""The port by which a coordinator reaches the logs of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)

OnVerified = Callable[[ErrorCode, VerificationGuard | None], None]
"""Takes an error, or a guard for the append. Without both the transaction is open in the log already."""


class LogRead(NamedTuple):
    """Whole record batches, and where the next read starts."""

    records: bytes
    next_offset: int
    is_end: bool
    """Whether nothing follows in the log as it is now."""


class CoordinatorLogs(Protocol):
    """The logs of the partitions that this broker leads, each in the leader epoch that the coordinator knows.

    In another epoch an append is refused with NOT_LEADER_OR_FOLLOWER, and a read returns None.
    """

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
        """Append with acks −1; ``on_appended`` is called once the outcome is known, perhaps at once.

        Records that open a transaction need the guard of its verification.
        """

    def verify_transaction(
        self,
        topic_partition: TopicPartition,
        producer: TransactionalProducer,
        on_verified: OnVerified,
        *,
        knows_abortable: bool,
    ) -> None:
        """Verify that the partition is in the transaction; ``on_verified`` is called with the outcome, perhaps at once.

        ``knows_abortable`` is whether the client understands TRANSACTION_ABORTABLE.
        """

    def append_unacknowledged(
        self, topic_partition: TopicPartition, leader_epoch: int, records: bytes
    ) -> bool:
        """Append with acks 0; return whether the leader's log has it."""

    def read(
        self, topic_partition: TopicPartition, leader_epoch: int, offset: int, max_bytes: int
    ) -> LogRead | None:
        """Read from an offset, or from the start of the log where that is later; None if it is not led in the epoch."""
