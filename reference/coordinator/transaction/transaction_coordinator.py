"""The transaction coordinator of one broker: every request about transactions, and what changes of role mean for them.

A transactional id has one producer. InitProducerId raises its epoch, and with it fences the producer that had the id
before: a transaction that is open is aborted, and the new producer asks again until that is done
(CONCURRENT_TRANSACTIONS). A decision counts once it is in the log; the markers follow.

Source: kafka.coordinator.transaction.TransactionCoordinator of Kafka 3.9, with transaction.version 0. Where it differs:
the end of a transaction is acknowledged again, and a loaded decision is carried out, only after the log has it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.transaction.transaction_completions import (
    RETRY_BACKOFF_S,
    MarkerChannels,
    TransactionCompletions,
)
from nemesis.reference.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    Transition,
)
from nemesis.reference.coordinator.transaction.transaction_requests import (
    ErrorCallback,
    InitProducerId,
    InitProducerIdResult,
    TransactionDescription,
    TransactionList,
    TransactionOverview,
)
from nemesis.reference.coordinator.transaction.transaction_state_manager import (
    OwnedTransaction,
    TransactionStateManager,
)
from nemesis.reference.coordinator.transaction.transaction_states import (
    IDLE,
    PREPARED,
    TransactionState,
)
from nemesis.reference.coordinator.transaction.transaction_traces import TransactionTraces
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import TopicPartition, TransactionalProducer
from nemesis.reference.ports import Scheduler, WallClock
from nemesis.reference.trace import Tracer

_logger = logging.getLogger(__name__)

_AGREE: Final = {
    (TransactionState.COMPLETE_COMMIT, True): ErrorCode.none,
    (TransactionState.COMPLETE_ABORT, False): ErrorCode.none,
    (TransactionState.PREPARE_COMMIT, True): ErrorCode.concurrent_transactions,
    (TransactionState.PREPARE_ABORT, False): ErrorCode.concurrent_transactions,
}
"""The answer to an EndTxn that asks for a commit (or not) of a transaction which is decided that way already."""


class TransactionCoordinator:
    """Answers requests about the transactional ids of one broker."""

    def __init__(
        self,
        config: KafkaConfig,
        transactions: TransactionStateManager,
        *,
        channels: MarkerChannels,
        scheduler: Scheduler,
        wall_clock: WallClock,
        generate_producer_id: Callable[[], Awaitable[int]],
        tracer: Tracer,
    ) -> None:
        self._config = config
        self._transactions = transactions
        self._traces = TransactionTraces(tracer)
        self._completions = TransactionCompletions(transactions, channels, scheduler, self._traces)
        self._scheduler = scheduler
        self._wall_clock = wall_clock
        self._generate_producer_id = generate_producer_id
        self._is_active = True
        self._has_jobs = False

    # Roles

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition of the transaction log."""
        if self._is_active and self._transactions.schedule_load(
            partition, leader_epoch, self._on_loaded
        ):
            self._start_jobs()

    def _on_loaded(self, owned: OwnedTransaction) -> None:
        if owned.metadata.state in PREPARED:
            self._resume(owned)

    def _resume(self, owned: OwnedTransaction) -> None:
        """Complete a decided transaction once the in-sync replicas have the decision.

        This broker may be the only one that has it: the former coordinator may have failed before others fetched it.
        """

        def on_confirmed(error: ErrorCode) -> None:
            if error is ErrorCode.none:
                self._completions.start(owned, self._wall_clock())
            elif self._transactions.is_current(owned):
                name = f"resume-transaction-{owned.metadata.transactional_id}"
                resume = partial(self._resume, owned)
                self._scheduler.schedule_once(name, resume, delay_s=RETRY_BACKOFF_S)

        self._transactions.confirm(owned, on_confirmed)

    def on_resignation(self, partition: int, leader_epoch: int | None) -> None:
        """This broker does not lead a partition of the transaction log any more; None: the topic is deleted."""
        self._transactions.remove_partition(partition, leader_epoch)

    def shutdown(self) -> None:
        self._is_active = False
        self._transactions.shutdown()

    def _start_jobs(self) -> None:
        """Look for transactions and ids whose time has passed. A broker that never coordinates has no such jobs."""
        if not self._has_jobs:
            self._has_jobs = True
            config = self._config
            abort_ms = config.transaction_abort_timed_out_transaction_cleanup_interval_ms
            remove_ms = config.transaction_remove_expired_transaction_cleanup_interval_ms
            self._scheduler.schedule(
                "transaction-abort", self.abort_timed_out_transactions, period_s=abort_ms / 1000
            )
            self._scheduler.schedule(
                "transactionalId-expiration",
                self._transactions.remove_expired_transactional_ids,
                period_s=remove_ms / 1000,
            )

    # InitProducerId

    async def init_producer_id(self, request: InitProducerId) -> InitProducerIdResult:
        """Give a producer its id and a new epoch, once they are in the log.

        Raises what generating a producer id does.
        """
        if not request.transactional_id:
            return InitProducerIdResult(ErrorCode.invalid_request)
        if not self._transactions.is_allowed_timeout(request.timeout_ms):
            return InitProducerIdResult(ErrorCode.invalid_transaction_timeout)
        new_producer_id: int | None = None
        while True:
            owned = self._initialized(request, new_producer_id)
            if isinstance(owned, ErrorCode):
                return InitProducerIdResult(owned)
            if owned is not None:
                transition = self._prepare_init(owned.metadata, request, new_producer_id)
                if isinstance(transition, ErrorCode):
                    return InitProducerIdResult(transition)
                if transition is not None:
                    return await self._init(owned, transition)
            # Other requests run meanwhile: everything is looked at again.
            new_producer_id = await self._generate_producer_id()

    def _initialized(
        self, request: InitProducerId, new_producer_id: int | None
    ) -> OwnedTransaction | ErrorCode | None:
        """Return the transactional id, a new one with the new producer id; None without that."""
        owned = self._transactions.get(request.transactional_id)
        if owned is not None or new_producer_id is None:
            return owned
        return self._transactions.put(
            TransactionMetadata(
                request.transactional_id, new_producer_id, request.timeout_ms, self._wall_clock()
            )
        )

    def _prepare_init(
        self, metadata: TransactionMetadata, request: InitProducerId, new_producer_id: int | None
    ) -> Transition | ErrorCode | None:
        """Return the transition, or an error; None if it takes a new producer id."""
        expected = request.expected
        if metadata.is_in_transition:
            return ErrorCode.concurrent_transactions
        if expected is not None and not metadata.may_initialize(expected):
            return ErrorCode.producer_fenced
        if metadata.state in PREPARED:
            return ErrorCode.concurrent_transactions
        if metadata.state not in IDLE:
            return metadata.prepare_fence_producer_epoch()
        now_ms = self._wall_clock()
        is_latest = expected is None or expected.epoch == metadata.producer_epoch
        if not (metadata.is_epoch_exhausted and is_latest):
            epoch = None if expected is None else expected.epoch
            raised = metadata.prepare_increment_producer_epoch(request.timeout_ms, epoch, now_ms)
            return raised or ErrorCode.producer_fenced
        if new_producer_id is None:
            return None
        return metadata.prepare_producer_id_rotation(
            new_producer_id,
            request.timeout_ms,
            now_ms,
            records_last_epoch=expected is not None,
        )

    async def _init(self, owned: OwnedTransaction, transition: Transition) -> InitProducerIdResult:
        stored: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        if transition.state is TransactionState.PREPARE_EPOCH_FENCE:
            self._end_transaction(
                _fenced_producer(owned, transition), stored.set_result, is_commit=False
            )
            error = await stored
            is_ended = error is ErrorCode.none
            return InitProducerIdResult(ErrorCode.concurrent_transactions if is_ended else error)
        self._transactions.append(owned, transition, stored.set_result)
        error = await stored
        if error is not ErrorCode.none:
            return InitProducerIdResult(error)
        return InitProducerIdResult(error, transition.producer_id, transition.producer_epoch)

    # Partitions of a transaction

    def add_partitions(
        self,
        producer: TransactionalProducer,
        partitions: frozenset[TopicPartition],
        callback: ErrorCallback,
    ) -> None:
        """Add partitions to the transaction, which begins with the first; the answer comes once the log has them."""
        owned = self._owned(producer)
        if isinstance(owned, ErrorCode):
            callback(owned)
            return
        metadata = owned.metadata
        if metadata.is_in_transition or metadata.state in PREPARED:
            callback(ErrorCode.concurrent_transactions)
        elif metadata.state is TransactionState.ONGOING and partitions <= metadata.partitions:
            callback(ErrorCode.none)
        else:
            added = partitions - metadata.partitions
            transition = metadata.prepare_add_partitions(partitions, self._wall_clock())

            def on_stored(error: ErrorCode) -> None:
                if error is ErrorCode.none:
                    self._traces.partitions_added(owned.coordinator_epoch, transition, added)
                callback(error)

            self._transactions.append(owned, transition, on_stored)

    def verify_partitions(
        self, producer: TransactionalProducer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it is in the transaction (KIP-890): TRANSACTION_ABORTABLE if not."""
        owned = self._owned(producer)
        if isinstance(owned, ErrorCode):
            return dict.fromkeys(partitions, owned)
        if owned.metadata.state in PREPARED:
            return dict.fromkeys(partitions, ErrorCode.concurrent_transactions)
        added = owned.metadata.partitions
        return {
            key: ErrorCode.none if key in added else ErrorCode.transaction_abortable
            for key in partitions
        }

    def _owned(self, producer: TransactionalProducer) -> OwnedTransaction | ErrorCode:
        """Return the transaction of the producer, or why it has none."""
        if not producer.transactional_id:
            return ErrorCode.invalid_request
        owned = self._transactions.get(producer.transactional_id)
        if isinstance(owned, ErrorCode):
            return owned
        if owned is None or owned.metadata.producer_id != producer.producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if owned.metadata.producer_epoch != producer.epoch:
            return ErrorCode.producer_fenced
        return owned

    # The end of a transaction

    def end_transaction(
        self, producer: TransactionalProducer, callback: ErrorCallback, *, is_commit: bool
    ) -> None:
        """Commit or abort; the answer comes once the decision is in the log. Markers follow."""
        owned = self._owned(producer)
        if isinstance(owned, ErrorCode):
            callback(owned)
        elif owned.metadata.is_in_transition:
            callback(ErrorCode.concurrent_transactions)
        else:
            self._end_transaction(producer, callback, is_commit=is_commit)

    def _end_transaction(
        self, producer: TransactionalProducer, callback: ErrorCallback, *, is_commit: bool
    ) -> None:
        """Decide, also for a producer that has just been fenced: then the decision raises its epoch."""
        owned = self._transactions.get(producer.transactional_id)
        if owned is None or isinstance(owned, ErrorCode):
            callback(owned or ErrorCode.invalid_producer_id_mapping)
            return
        metadata = owned.metadata
        if metadata.state is not TransactionState.ONGOING:
            answer = _AGREE.get((metadata.state, is_commit), ErrorCode.invalid_txn_state)
            if answer is ErrorCode.none:
                # A former coordinator does not know of the next transaction, which this end may be meant for.
                self._transactions.confirm(owned, callback)
            else:
                callback(answer)
            return
        is_fence = metadata.pending_state is TransactionState.PREPARE_EPOCH_FENCE
        if is_fence:
            metadata.adopt_fenced_epoch(producer.epoch)
        decision = metadata.prepare_decision(is_commit=is_commit, now_ms=self._wall_clock())

        def on_stored(error: ErrorCode) -> None:
            if error is ErrorCode.none:
                callback(error)
                self._completions.start(owned, self._wall_clock())
                return
            metadata.has_failed_epoch_fence |= is_fence
            callback(error)

        self._transactions.append(owned, decision, on_stored)

    def abort_timed_out_transactions(self) -> None:
        """Fence the producers whose transactions are open for too long, and abort these."""
        now_ms = self._wall_clock()
        for owned in self._transactions.all():
            if owned.metadata.is_timed_out(now_ms):
                transactional_id = owned.metadata.transactional_id
                _logger.info("the transaction of %s has timed out", transactional_id)
                transition = owned.metadata.prepare_fence_producer_epoch()
                self._end_transaction(
                    _fenced_producer(owned, transition), _log_outcome, is_commit=False
                )

    # Administration

    def list_transactions(
        self, states: Collection[str], producer_ids: Collection[int], duration_ms: int
    ) -> TransactionList:
        """Return the transactional ids of this broker; an empty filter or a negative duration lets all pass."""
        if not self._is_active:
            return TransactionList(ErrorCode.coordinator_not_available)
        if self._transactions.is_loading:
            return TransactionList(ErrorCode.coordinator_load_in_progress)
        now_ms = self._wall_clock()
        known = {state.value for state in TransactionState}
        transactions = tuple(
            TransactionOverview(
                metadata.transactional_id, metadata.producer_id, metadata.state.value
            )
            for _, metadata in self._transactions.all()
            if (not states or metadata.state.value in states)
            and (not producer_ids or metadata.producer_id in producer_ids)
            and (duration_ms < 0 or now_ms - metadata.start_timestamp > duration_ms)
        )
        unknown = tuple(state for state in states if state not in known)
        return TransactionList(ErrorCode.none, unknown, transactions)

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Describe the transaction of an id; of a decided one, the partitions without a marker."""
        if not self._is_active:
            return TransactionDescription(transactional_id, ErrorCode.coordinator_not_available)
        if not transactional_id:
            return TransactionDescription(transactional_id, ErrorCode.invalid_request)
        owned = self._transactions.get(transactional_id)
        if owned is None or isinstance(owned, ErrorCode):
            missing = ErrorCode.transactional_id_not_found
            return TransactionDescription(transactional_id, owned or missing)
        metadata = owned.metadata
        return TransactionDescription(
            transactional_id,
            ErrorCode.none,
            metadata.state.value,
            metadata.timeout_ms,
            metadata.start_timestamp,
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.partitions,
        )


def _fenced_producer(owned: OwnedTransaction, fence: Transition) -> TransactionalProducer:
    """The producer that aborts the transaction of a fenced one."""
    return TransactionalProducer(
        owned.metadata.transactional_id, fence.producer_id, fence.producer_epoch
    )


def _log_outcome(error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        _logger.warning("a transaction that has timed out is not aborted: %s", error.name)
