"""Tasks that fetch for partitions: one for each source or target, from its first partition until it has none left.

Source: kafka.server.AbstractFetcherManager of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from nemesis.reference.model import TopicPartition

_logger = logging.getLogger(__name__)


class FetcherThread(Protocol):
    """What such a task runs; partitions come and go while it does."""

    @property
    def topic_partitions(self) -> frozenset[TopicPartition]: ...
    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop fetching for the partition, if it does."""

    async def run(self) -> None:
        """Fetch until cancelled."""


Key = TypeVar("Key", bound=Hashable)
Thread = TypeVar("Thread", bound=FetcherThread)


class AbstractFetcherManager(Generic[Key, Thread]):
    """Owns the tasks, by what they are for. All but ``shutdown`` is synchronous; needs a running loop."""

    def __init__(self) -> None:
        self._threads: dict[Key, Thread] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def remove_fetchers(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching for these partitions; answers under way are dropped."""
        removed = tuple(topic_partitions)
        for thread in self._threads.values():
            for topic_partition in removed:
                thread.remove(topic_partition)

    def shutdown_idle_fetcher_threads(self) -> None:
        """End the tasks that have no partition left."""
        for key, thread in list(self._threads.items()):
            if not thread.topic_partitions:
                del self._threads[key]
                task = self._tasks.pop(key)
                task.cancel()
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    async def shutdown(self) -> None:
        """Cancel every task and wait until it is gone."""
        tasks = [*self._tasks.values(), *self._ending]
        self._threads.clear()
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _thread(self, key: Key, name: str, start: Callable[[], Thread]) -> Thread:
        """Return the one for the key, started as a task of that name unless it runs."""
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = start()
            task = asyncio.get_running_loop().create_task(thread.run(), name=name)
            task.add_done_callback(_report_crash)
            self._tasks[key] = task
        return thread


def _report_crash(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _logger.critical(
            "%s crashed; nothing more is fetched there", task.get_name(), exc_info=error
        )
