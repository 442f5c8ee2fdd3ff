"""The transactional ids that this broker coordinates, and their records in the transaction log.

Elections, loading and coordinator epochs are those of ``coordinated_partitions``. Each election loads the partition: a
transition that was on its way in the former epoch is in the log then, or it never will be.

Source: kafka.coordinator.transaction.TransactionStateManager of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.coordinated_partitions import (
    CoordinatedPartition,
    CoordinatedPartitions,
)
from nemesis.reference.coordinator.coordinator_logs import CoordinatorLogs
from nemesis.reference.coordinator.transaction.transaction_loading import LoadedTransactions
from nemesis.reference.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    Transition,
)
from nemesis.reference.coordinator.transaction.transaction_records import (
    transaction_key,
    transaction_value,
)
from nemesis.reference.coordinator.transaction.transaction_requests import ErrorCallback
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import TRANSACTION_STATE_TOPIC_NAME, ProducePartitionResult
from nemesis.reference.ports import Scheduler, WallClock
from nemesis.reference.protocol.records import new_batch

REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of ``request.timeout.ms``."""
_NOT_STORED: Final = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}
"""How the errors of an append are reported to producers."""

_MOST_EXPIRED_BYTES: Final = 65_536
"""Of the transactional ids in one batch of tombstones, if it has several."""

TransactionPartition = CoordinatedPartition[TransactionMetadata]


class OwnedTransaction(NamedTuple):
    """A transactional id, and the partition and coordinator epoch in which it is coordinated here."""

    partition: TransactionPartition
    metadata: TransactionMetadata

    @property
    def coordinator_epoch(self) -> int:
        return self.partition.epoch


class TransactionStateManager:
    """Transactions by transactional id."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        logs: CoordinatorLogs,
        scheduler: Scheduler,
        wall_clock: WallClock,
        retrieve_partition_count: Callable[[], Awaitable[int]],
    ) -> None:
        """``retrieve_partition_count`` returns how many partitions the topic has."""
        self._expiration_ms = config.transactional_id_expiration_ms
        self._max_timeout_ms = config.transaction_max_timeout_ms
        self._wall_clock = wall_clock
        self._partitions = CoordinatedPartitions[TransactionMetadata, LoadedTransactions](
            TRANSACTION_STATE_TOPIC_NAME,
            logs=logs,
            scheduler=scheduler,
            retrieve_partition_count=retrieve_partition_count,
            load_buffer_size=config.transaction_state_log_load_buffer_size,
            new_contents=LoadedTransactions,
            items_of=LoadedTransactions.transactions,
        )

    # Roles

    def schedule_load(
        self, number: int, epoch: int, on_loaded: Callable[[OwnedTransaction], None]
    ) -> bool:
        """Load a partition that was won in the epoch; ``on_loaded`` is called with each of its transactions."""

        def on_partition(partition: TransactionPartition) -> None:
            for metadata in list(partition.items.values()):
                on_loaded(OwnedTransaction(partition, metadata))

        return self._partitions.schedule_load(
            number,
            epoch,
            on_partition,
            job_name=f"load-txns-for-partition-{TRANSACTION_STATE_TOPIC_NAME}-{number}",
            reload=True,
        )

    def remove_partition(self, number: int, epoch: int | None) -> None:
        """Coordinate a partition no longer; see ``CoordinatedPartitions.remove``."""
        self._partitions.remove(number, epoch)

    def shutdown(self) -> None:
        for partition in self._partitions.current:
            self._partitions.remove(partition.number, None)

    # Look-up

    @property
    def is_loading(self) -> bool:
        return self._partitions.is_loading

    def is_allowed_timeout(self, timeout_ms: int) -> bool:
        return 0 < timeout_ms <= self._max_timeout_ms

    def status_error(self, transactional_id: str) -> ErrorCode | None:
        return self._partitions.status_error(transactional_id)

    def is_current(self, owned: OwnedTransaction) -> bool:
        """Whether the transaction has been coordinated here since, without a loading in between."""
        partition, metadata = owned
        return (
            self._partitions.is_current(partition)
            and partition.items.get(metadata.transactional_id) is metadata
        )

    def get(self, transactional_id: str) -> OwnedTransaction | ErrorCode | None:
        """Return the transaction; None if the transactional id is new; an error if it is not coordinated here."""
        error = self._partitions.status_error(transactional_id)
        partition = self._partitions.of_key(transactional_id)
        if error is not None or partition is None:
            return error or ErrorCode.not_coordinator
        metadata = partition.items.get(transactional_id)
        return None if metadata is None else OwnedTransaction(partition, metadata)

    def put(self, metadata: TransactionMetadata) -> OwnedTransaction | ErrorCode:
        """Add a transactional id, unless it is known by now; return it."""
        present = self.get(metadata.transactional_id)
        if present is not None:
            return present
        partition = self._partitions.of_key(metadata.transactional_id)
        if partition is None:
            return ErrorCode.not_coordinator
        partition.items[metadata.transactional_id] = metadata
        return OwnedTransaction(partition, metadata)

    def all(self) -> Iterator[OwnedTransaction]:
        for partition in self._partitions.current:
            for metadata in list(partition.items.values()):
                yield OwnedTransaction(partition, metadata)

    # Records

    def append(
        self,
        owned: OwnedTransaction,
        transition: Transition,
        on_stored: ErrorCallback,
        *,
        retried: Collection[ErrorCode] = (),
    ) -> None:
        """Write a transition that was prepared, and complete it; ``on_stored`` is called with the error for producers.

        After an error the transition is not pending any more, unless it is one that the caller will retry.
        """
        metadata = owned.metadata

        def on_written(error: ErrorCode) -> None:
            if self.is_current(owned):
                if error is ErrorCode.none:
                    metadata.complete_transition(transition)
                elif error not in retried:
                    metadata.pending_state = None
            on_stored(error)

        self._write(owned, transition, on_written)

    def confirm(self, owned: OwnedTransaction, on_confirmed: ErrorCallback) -> None:
        """Write the present state again; ``on_confirmed`` is called with the error for producers.

        Once the in-sync replicas have it, no other broker had become the coordinator when it was written.
        """
        self._write(owned, owned.metadata.as_stored(), on_confirmed)

    def _write(
        self, owned: OwnedTransaction, transition: Transition, on_written: ErrorCallback
    ) -> None:
        """Append a record; success after the transaction was given up, or loaded again, is an error for producers."""
        transactional_id = owned.metadata.transactional_id

        def on_appended(result: ProducePartitionResult) -> None:
            error = _NOT_STORED.get(result.error, result.error)
            if error is ErrorCode.none and not self.is_current(owned):
                status = self._partitions.status_error(transactional_id)
                error = status or ErrorCode.not_coordinator
            on_written(error)

        record = transaction_key(transactional_id), transaction_value(transition)
        self._partitions.append(
            owned.partition,
            new_batch([record], self._wall_clock()),
            timeout_ms=transition.timeout_ms,
            on_appended=on_appended,
        )

    # Expiry

    def remove_expired_transactional_ids(self) -> None:
        """Write tombstones for the ids that have been idle for too long, and forget them once the log has them."""
        now_ms = self._wall_clock()
        for partition in self._partitions.current:
            expired = [
                metadata
                for metadata in partition.items.values()
                if metadata.is_expired(now_ms, self._expiration_ms)
            ]
            for group in _in_batches(expired):
                self._write_tombstones(partition, group)

    def _write_tombstones(
        self, partition: TransactionPartition, expired: list[TransactionMetadata]
    ) -> None:
        for metadata in expired:
            metadata.prepare_dead()

        def on_appended(result: ProducePartitionResult) -> None:
            for metadata in expired:
                if result.error is not ErrorCode.none:
                    metadata.pending_state = None
                elif partition.items.get(metadata.transactional_id) is metadata:
                    del partition.items[metadata.transactional_id]

        records = [(transaction_key(metadata.transactional_id), None) for metadata in expired]
        self._partitions.append(
            partition,
            new_batch(records, self._wall_clock()),
            timeout_ms=REQUEST_TIMEOUT_MS,
            on_appended=on_appended,
        )


def _in_batches(expired: list[TransactionMetadata]) -> list[list[TransactionMetadata]]:
    """Return the ids in groups whose tombstones fit into a batch each: the log refuses a batch that is too large."""
    groups: list[list[TransactionMetadata]] = []
    size = _MOST_EXPIRED_BYTES
    for metadata in expired:
        more = len(metadata.transactional_id.encode())
        if size + more > _MOST_EXPIRED_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(metadata)
        size += more
    return groups
