"""The partitions of its topic that a coordinator of this broker has, each with what its log holds, by key.

A broker coordinates the keys of the partitions that it leads, from the end of their loading until it leads them no
more. The leader epoch of the partition is the coordinator epoch: an election or resignation of an older epoch has no
effect, a loading that a newer one has overtaken ends without one, and an append reaches the log in the epoch of the
partition, or not at all.

Loading is a job of its own of the scheduler. A log that cannot be read is not coordinated: requests about its keys are
answered NOT_COORDINATOR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.coordinator_logs import CoordinatorLogs, OnVerified
from nemesis.reference.coordinator.key_partitions import partition_for
from nemesis.reference.log.verification_state import VerificationGuard
from nemesis.reference.model import (
    ProducePartitionResult,
    TopicPartition,
    TransactionalProducer,
)
from nemesis.reference.ports import Scheduler

_logger = logging.getLogger(__name__)

_LOAD_STEP_BYTES = 1 << 18
"""How much is read before other tasks run: some milliseconds. A larger buffer would hold up the broker."""


class LogContents(Protocol):
    """What has been read of a log so far."""

    def take_in(self, records: bytes) -> None:
        """Take in whole batches, in the sequence of the log. Raises CorruptRecordError."""


Item = TypeVar("Item")
Contents = TypeVar("Contents", bound=LogContents)


@dataclass(slots=True, eq=False)
class CoordinatedPartition(Generic[Item]):
    """A partition that this broker leads."""

    number: int
    epoch: int
    is_loading: bool = True
    items: dict[str, Item] = field(default_factory=dict)
    """By key, once they are loaded."""


class CoordinatedPartitions(Generic[Item, Contents]):
    """Items by key; the partition of each follows from the key and the number of partitions."""

    def __init__(
        self,
        topic: str,
        *,
        logs: CoordinatorLogs,
        scheduler: Scheduler,
        retrieve_partition_count: Callable[[], Awaitable[int]],
        load_buffer_size: int,
        new_contents: Callable[[], Contents],
        items_of: Callable[[Contents], dict[str, Item]],
    ) -> None:
        """``retrieve_partition_count`` returns how many partitions the topic has."""
        self._topic = topic
        self._logs = logs
        self._scheduler = scheduler
        self._retrieve_partition_count = retrieve_partition_count
        self._max_bytes = min(load_buffer_size, _LOAD_STEP_BYTES)
        self._new_contents = new_contents
        self._items_of = items_of
        self._partition_count: int | None = None
        self._coordinated: dict[int, CoordinatedPartition[Item]] = {}
        self._epochs: dict[int, int] = {}
        """The latest coordinator epoch of each partition, in this process."""

    # Roles

    def schedule_load(
        self,
        number: int,
        epoch: int,
        on_loaded: Callable[[CoordinatedPartition[Item]], None],
        *,
        job_name: str,
        reload: bool = False,
    ) -> bool:
        """Coordinate a partition that has been won in the epoch, once it is loaded; return whether the epoch is new.

        A leader that is elected again goes on with what it has, unless ``reload``: its log has had no other writer.
        """
        if epoch <= self._epochs.get(number, -1):
            _logger.info("%s is not loaded in the old epoch %d", self._key(number), epoch)
            return False
        self._epochs[number] = epoch
        present = self._coordinated.get(number)
        if present is not None and not present.is_loading and not reload:
            present.epoch = epoch
            return True
        self._coordinated[number] = loading = CoordinatedPartition[Item](number, epoch)
        self._scheduler.schedule_once(job_name, lambda: self._load(loading, on_loaded), delay_s=0)
        return True

    def remove(self, number: int, epoch: int | None) -> CoordinatedPartition[Item] | None:
        """Coordinate a partition no longer, and return it: another broker leads it in the epoch.

        Without an epoch the topic is deleted: another one of its name begins with epoch 0 again.
        """
        if epoch is None:
            self._epochs.pop(number, None)
        elif epoch < self._epochs.get(number, -1):
            return None
        else:
            self._epochs[number] = epoch
        removed = self._coordinated.pop(number, None)
        if removed is not None:
            _logger.info("%s is given up in epoch %s", self._key(number), epoch)
        if not self._coordinated:
            self._partition_count = None  # the topic may come back with another number
        return removed

    async def _load(
        self,
        loading: CoordinatedPartition[Item],
        on_loaded: Callable[[CoordinatedPartition[Item]], None],
    ) -> None:
        try:
            count = await self._retrieve_partition_count()
            contents = await self._read(loading)
        except Exception:
            _logger.exception("%s is not loaded", self._key(loading.number))
            contents = None
        if not self.is_current(loading):
            return
        if contents is None:
            _logger.info("%s is not led in epoch %d", self._key(loading.number), loading.epoch)
            del self._coordinated[loading.number]
            return
        if self._partition_count is None:
            self._partition_count = count
        loading.items = self._items_of(contents)
        loading.is_loading = False
        _logger.info(
            "%s: %d keys in epoch %d", self._key(loading.number), len(loading.items), loading.epoch
        )
        on_loaded(loading)

    async def _read(self, loading: CoordinatedPartition[Item]) -> Contents | None:
        """Return what the log has; None if it is not led here in the epoch any more."""
        contents = self._new_contents()
        offset = 0
        while self.is_current(loading):
            read = self._logs.read(
                self._key(loading.number), loading.epoch, offset, self._max_bytes
            )
            if read is None:
                break
            contents.take_in(read.records)
            if read.is_end:
                return contents
            offset = read.next_offset
            await asyncio.sleep(0)
        return None

    # Look-up

    @property
    def is_loading(self) -> bool:
        """Whether the keys of some partition are not known yet."""
        return any(partition.is_loading for partition in self._coordinated.values())

    @property
    def current(self) -> list[CoordinatedPartition[Item]]:
        """Those of now, a partition that is loading among them without items."""
        return list(self._coordinated.values())

    def is_current(self, partition: CoordinatedPartition[Item]) -> bool:
        """Whether the partition has been coordinated since, without a loading in between."""
        return self._coordinated.get(partition.number) is partition

    def status_error(self, key: str) -> ErrorCode | None:
        """Why requests about a key cannot be answered; None if they can."""
        if self._partition_count is None:
            return (
                ErrorCode.coordinator_load_in_progress
                if self.is_loading
                else ErrorCode.not_coordinator
            )
        partition = self.of_key(key)
        if partition is None:
            return ErrorCode.not_coordinator
        return ErrorCode.coordinator_load_in_progress if partition.is_loading else None

    def of_key(self, key: str) -> CoordinatedPartition[Item] | None:
        """Return the partition of a key, if it is coordinated here."""
        if self._partition_count is None:
            return None
        return self._coordinated.get(partition_for(key, self._partition_count))

    def of_number(self, number: int) -> CoordinatedPartition[Item] | None:
        """Return the partition of a number, if it is coordinated here."""
        return self._coordinated.get(number)

    # Records

    def append(
        self,
        partition: CoordinatedPartition[Item],
        records: bytes,
        *,
        timeout_ms: int,
        on_appended: Callable[[ProducePartitionResult], None],
        guard: VerificationGuard | None = None,
    ) -> None:
        """Append with acks −1 to a partition, which may have been given up."""
        if not self.is_current(partition):
            on_appended(ProducePartitionResult(ErrorCode.not_leader_or_follower))
            return
        self._logs.append(
            self._key(partition.number),
            partition.epoch,
            records,
            timeout_ms=timeout_ms,
            on_appended=on_appended,
            guard=guard,
        )

    def verify_transaction(
        self,
        number: int,
        producer: TransactionalProducer,
        on_verified: OnVerified,
        *,
        knows_abortable: bool,
    ) -> None:
        """Verify that a partition is in a transaction; see ``CoordinatorLogs``."""
        self._logs.verify_transaction(
            self._key(number), producer, on_verified, knows_abortable=knows_abortable
        )

    def append_unacknowledged(self, partition: CoordinatedPartition[Item], records: bytes) -> bool:
        """Append with acks 0; return whether the leader's log has it."""
        return self._logs.append_unacknowledged(
            self._key(partition.number), partition.epoch, records
        )

    def _key(self, number: int) -> TopicPartition:
        return TopicPartition(self._topic, number)
