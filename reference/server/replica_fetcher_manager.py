"""Which partition is fetched from which leader: one ``ReplicaFetcherThread`` per leader, started and ended as
needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from reference.kafka_config import KafkaConfig
from reference.log.errors import KafkaStorageError
from reference.model import BrokerEndPoint, TopicPartition
from reference.server.connection import ConnectionFactory
from reference.server.partition_fetch_state import PartitionFetchState
from reference.server.replica_fetcher_thread import ReplicaFetcherThread

_logger = logging.getLogger(__name__)


class ReplicaFetcherManager:
    """Owns the fetcher tasks. All but ``shutdown`` is synchronous; needs a running loop."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        connect: ConnectionFactory,
        broker_epoch: Callable[[], int],
        on_storage_error: Callable[[TopicPartition, KafkaStorageError], None],
    ) -> None:
        self._config = config
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._on_storage_error = on_storage_error
        self._threads: dict[BrokerEndPoint, ReplicaFetcherThread] = {}
        self._tasks: dict[ReplicaFetcherThread, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def add_fetcher(self, leader: BrokerEndPoint, state: PartitionFetchState) -> None:
        """Follow ``leader`` for one partition; a fetcher that it has elsewhere must have been removed."""
        thread = self._threads.get(leader)
        if thread is None:
            thread = ReplicaFetcherThread(
                self._config,
                leader,
                connection=self._connect(f"broker-{self._config.broker_id}-fetcher-{leader.id}"),
                broker_epoch=self._broker_epoch,
                on_storage_error=self._on_storage_error,
            )
            self._threads[leader] = thread
            task = asyncio.get_running_loop().create_task(
                thread.run(), name=f"replica-fetcher-{leader.id}"
            )
            task.add_done_callback(_report_crash)
            self._tasks[thread] = task
        thread.add(state)

    def remove_fetchers(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching for these partitions; answers under way are dropped."""
        doomed = tuple(topic_partitions)
        for thread in self._threads.values():
            for topic_partition in doomed:
                thread.remove(topic_partition)

    def shutdown_idle_fetcher_threads(self) -> None:
        """End the tasks that have no partition left."""
        for leader, thread in list(self._threads.items()):
            if not thread.topic_partitions:
                del self._threads[leader]
                task = self._tasks.pop(thread)
                task.cancel()
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The broker from which the partition is being fetched; None if it is not."""
        for leader, thread in self._threads.items():
            if topic_partition in thread.topic_partitions:
                return leader.id
        return None

    async def shutdown(self) -> None:
        """Cancel every fetcher and wait until it is gone."""
        tasks = [*self._tasks.values(), *self._ending]
        self._threads.clear()
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _report_crash(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _logger.critical(
            "%s crashed; nothing more is fetched there", task.get_name(), exc_info=error
        )
