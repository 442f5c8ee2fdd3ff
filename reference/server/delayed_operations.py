"""Requests that wait for something to happen to a partition: acks=all produces and long-polling fetches.

Kafka's purgatory: an operation is looked at again whenever one of its partitions makes progress, and given up at its
time-out. Its response is made in the same step in which it completes, so what happens between then and the sending
cannot change it. Nothing is kept of an operation that is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from nemesis.reference.model import TopicPartition

Response = TypeVar("Response")
Results = TypeVar("Results")
Results_co = TypeVar("Results_co", covariant=True)


class DelayedOperation(Protocol[Results_co]):
    """Something that becomes complete by progress on partitions."""

    def try_complete(self, key: TopicPartition) -> bool:
        """Look at ``key`` again, which has changed; return whether nothing has to be waited for any more."""

    def results(self) -> Results_co:
        """What to answer as things stand; asked once, when complete or when the time is up."""


class DelayedOperationPurgatory:
    """The operations that wait, by the partitions that they watch."""

    def __init__(self) -> None:
        self._watchers: _Watchers = {}

    def __len__(self) -> int:
        """How many (partition, operation) pairs are watched."""
        return sum(map(len, self._watchers.values()))

    def watch(
        self,
        operation: DelayedOperation[Results],
        keys: Collection[TopicPartition],
        *,
        timeout_s: float,
        respond: Callable[[Results], Response],
    ) -> asyncio.Future[Response]:
        """Return a future of the response to what the operation finds; cancel it to give up."""
        return _Waiting(operation, respond, keys, self._watchers, timeout_s)

    def check_and_complete(self, key: TopicPartition) -> None:
        """Try every operation that watches ``key``; called after its state changed and was traced."""
        watchers = self._watchers.get(key)
        if watchers is not None:
            for waiting in tuple(watchers):
                waiting.look_at(key)


class _Waiting(asyncio.Future[Any]):
    """The response to one operation, equal only to itself. No task: whoever makes the progress makes the response.

    What goes wrong meanwhile is the outcome of this request, not of the one that made the progress.
    """

    def __init__(
        self,
        operation: DelayedOperation[Any],
        respond: Callable[[Any], Any],
        keys: Collection[TopicPartition],
        watchers: _Watchers,
        timeout_s: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop=loop)
        self._operation = operation
        self._respond = respond
        self._keys = keys
        self._watchers = watchers
        for key in keys:
            watchers.setdefault(key, {})[self] = None
        self._time_is_up = loop.call_later(timeout_s, self._finish)

    def look_at(self, key: TopicPartition) -> None:
        if self.done():
            return
        try:
            is_complete = self._operation.try_complete(key)
        except Exception as error:  # noqa: BLE001 - told to who waits
            self._end()
            self.set_exception(error)
        else:
            if is_complete:
                self._finish()

    def cancel(self, msg: Any | None = None) -> bool:
        if not self.done():
            self._end()
        return super().cancel(msg)

    def _finish(self) -> None:
        self._end()
        try:
            self.set_result(self._respond(self._operation.results()))
        except Exception as error:  # noqa: BLE001 - told to who waits
            self.set_exception(error)

    def _end(self) -> None:
        self._time_is_up.cancel()
        for key in self._keys:
            watchers = self._watchers[key]
            del watchers[self]
            if not watchers:
                del self._watchers[key]


_Watchers = dict[TopicPartition, dict[_Waiting, None]]
