"""What follows the decision about a transaction: a marker in each of its partitions, then its end in the log.

Markers go to the leaders of the partitions until each has one. Errors that a new leader or more replicas may cure, and
all that are not known, are retried. A partition that does not exist any more needs no marker. A leader that knows a
later producer epoch or coordinator epoch ends the work: another coordinator does it.

Source: kafka.coordinator.transaction.TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler of
Kafka 3.9. Where it differs: a retry waits for ``RETRY_BACKOFF_S``; an error that is not known is retried.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.transaction.transaction_metadata import Transition
from nemesis.reference.coordinator.transaction.transaction_state_manager import (
    OwnedTransaction,
    TransactionStateManager,
)
from nemesis.reference.coordinator.transaction.transaction_states import TransactionState
from nemesis.reference.coordinator.transaction.transaction_traces import TransactionTraces
from nemesis.reference.model import TopicPartition
from nemesis.reference.ports import Scheduler

_logger = logging.getLogger(__name__)

RETRY_BACKOFF_S: Final = 0.1
_WRITTEN: Final = frozenset(
    {
        ErrorCode.none,
        ErrorCode.unsupported_for_message_format,
        ErrorCode.unsupported_version,
    }
)
"""The partition has its marker, or can have none."""
_FENCED: Final = frozenset(
    {ErrorCode.invalid_producer_epoch, ErrorCode.transaction_coordinator_fenced}
)


@dataclass(frozen=True, slots=True, eq=False)
class TransactionMarker:
    """The markers of one transaction."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


MarkerErrors = Mapping[TopicPartition, ErrorCode]


class MarkerChannels(Protocol):
    """The ways to the leaders of partitions."""

    def exists(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is known to this broker."""

    def send(
        self,
        marker: TransactionMarker,
        partitions: Iterable[TopicPartition],
        on_answer: Callable[[MarkerErrors], None],
    ) -> None:
        """Have the marker written to the partitions; each is answered once, with others or alone."""


@dataclass(frozen=True, slots=True, eq=False)
class _Completion:
    """A transaction that is complete when its partitions have their markers."""

    owned: OwnedTransaction
    transition: Transition
    marker: TransactionMarker
    partitions: set[TopicPartition]
    """Those of the transaction that exist."""

    @property
    def transactional_id(self) -> str:
        return self.owned.metadata.transactional_id


class TransactionCompletions:
    """By transactional id."""

    def __init__(
        self,
        transactions: TransactionStateManager,
        channels: MarkerChannels,
        scheduler: Scheduler,
        traces: TransactionTraces,
    ) -> None:
        self._transactions = transactions
        self._channels = channels
        self._scheduler = scheduler
        self._traces = traces

    def start(self, owned: OwnedTransaction, now_ms: int) -> None:
        """Complete a transaction whose decision is in the log."""
        metadata = owned.metadata
        is_commit = metadata.state is TransactionState.PREPARE_COMMIT
        marker = TransactionMarker(
            metadata.producer_id, metadata.producer_epoch, owned.coordinator_epoch, is_commit
        )
        completion = _Completion(
            owned, metadata.prepare_complete(now_ms), marker, {*metadata.partitions}
        )
        self._send(completion, metadata.partitions)

    def _send(self, completion: _Completion, partitions: Iterable[TopicPartition]) -> None:
        if not self._transactions.is_current(completion.owned):
            return
        existing = [key for key in sorted(partitions) if self._channels.exists(key)]
        gone = frozenset(partitions) - frozenset(existing)
        if gone:
            _logger.info("%s: %s are deleted", completion.transactional_id, sorted(gone))
            completion.owned.metadata.remove_partitions(gone)
            completion.partitions.difference_update(gone)
        if existing:
            self._channels.send(
                completion.marker, existing, lambda errors: self._on_answer(completion, errors)
            )
        else:
            self._end_if_written(completion)

    def _on_answer(self, completion: _Completion, errors: MarkerErrors) -> None:
        if not self._transactions.is_current(completion.owned):
            return
        metadata = completion.owned.metadata
        metadata.remove_partitions(key for key, error in errors.items() if error in _WRITTEN)
        if not _FENCED.isdisjoint(errors.values()):
            _logger.info("%s: another coordinator ends the transaction", metadata.transactional_id)
            return
        retried = [key for key, error in errors.items() if error not in _WRITTEN]
        if retried:
            self._retry(completion, lambda: self._send(completion, retried))
        else:
            self._end_if_written(completion)

    def _end_if_written(self, completion: _Completion) -> None:
        if not completion.owned.metadata.partitions:
            self._append(completion)

    def _append(self, completion: _Completion) -> None:
        unavailable = ErrorCode.coordinator_not_available

        def on_stored(error: ErrorCode) -> None:
            if error is unavailable:
                self._retry(completion, lambda: self._append(completion))
            elif error is ErrorCode.none:
                self._traces.completed(
                    completion.owned.coordinator_epoch, completion.transition, completion.partitions
                )
            else:
                _logger.info("%s is not complete: %s", completion.transactional_id, error.name)

        if self._transactions.is_current(completion.owned):
            self._transactions.append(
                completion.owned, completion.transition, on_stored, retried=(unavailable,)
            )

    def _retry(self, completion: _Completion, action: Callable[[], None]) -> None:
        name = f"complete-transaction-{completion.transactional_id}"
        self._scheduler.schedule_once(name, action, delay_s=RETRY_BACKOFF_S)
