"""Requests that wait for something to happen to a partition: acks=all produces and long-polling fetches.

Kafka's purgatory: an operation is tried at once, again whenever one of its partitions makes progress, and given
up at its time-out. ``try_complete`` is synchronous and fixes the outcome at the moment of progress, so what
happens between then and the answer cannot change it. Nothing is kept of an operation that is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from reference.model import TopicPartition


class DelayedOperation(Protocol):
    """Something that becomes complete by progress on partitions."""

    def try_complete(self) -> bool:
        """Return True once complete; called any number of times before that, never after."""


class DelayedOperationPurgatory:
    """The operations that wait, by the partitions that they watch."""

    def __init__(self) -> None:
        self._watchers: dict[TopicPartition, dict[_Waiting, None]] = {}

    def __len__(self) -> int:
        """How many (partition, operation) pairs are watched."""
        return sum(map(len, self._watchers.values()))

    async def wait(
        self, operation: DelayedOperation, keys: Iterable[TopicPartition], *, timeout_s: float
    ) -> bool:
        """Wait until the operation completes (True) or the time is up (False)."""
        if operation.try_complete():
            return True
        loop = asyncio.get_running_loop()
        waiting = _Waiting(operation, loop.create_future())
        watched = tuple(keys)
        for key in watched:
            self._watchers.setdefault(key, {})[waiting] = None
        time_is_up = loop.call_later(timeout_s, waiting.finish, False)
        try:
            return await waiting.is_complete
        finally:
            time_is_up.cancel()
            for key in watched:
                self._forget(key, waiting)

    def check_and_complete(self, key: TopicPartition) -> None:
        """Try every operation that watches ``key``; called after its state changed and was traced."""
        for waiting in tuple(self._watchers.get(key, ())):
            if not waiting.is_complete.done() and waiting.operation.try_complete():
                waiting.finish(True)

    def _forget(self, key: TopicPartition, waiting: _Waiting) -> None:
        watchers = self._watchers.get(key)
        if watchers is not None:
            watchers.pop(waiting, None)
            if not watchers:
                del self._watchers[key]


class _Waiting:
    """One operation and the future that its caller awaits; equal only to itself."""

    __slots__ = ("is_complete", "operation")

    def __init__(self, operation: DelayedOperation, is_complete: asyncio.Future[bool]) -> None:
        self.operation = operation
        self.is_complete = is_complete

    def finish(self, is_complete: bool) -> None:
        """The first word counts."""
        if not self.is_complete.done():
            self.is_complete.set_result(is_complete)
