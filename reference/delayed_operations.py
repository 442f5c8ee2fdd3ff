"""Requests that wait for something to happen: to a partition, to a group, to one of its members.

Kafka's purgatory: an operation is looked at again whenever one of its keys makes progress, and given up at its
time-out. Its response is made in the same step in which it completes, so what happens between then and the sending
cannot change it. Nothing is kept of an operation that has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable
from typing import Any, Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)
Key_contra = TypeVar("Key_contra", bound=Hashable, contravariant=True)
Response = TypeVar("Response")
Results = TypeVar("Results")
Results_co = TypeVar("Results_co", covariant=True)


class DelayedOperation(Protocol[Key_contra, Results_co]):
    """Something that becomes complete by progress on keys."""

    def try_complete(self, key: Key_contra) -> bool:
        """Look at ``key`` again, which has changed; return whether nothing has to be waited for any more."""

    def results(self) -> Results_co:
        """What to answer as things stand; asked once, when complete or when the time is up."""


class DelayedOperationPurgatory(Generic[Key]):
    """The operations that wait, by the keys that they watch: partitions, or any other hashable values."""

    def __init__(self) -> None:
        self._watchers: _Watchers = {}

    def __len__(self) -> int:
        """How many (key, operation) pairs are watched."""
        return sum(map(len, self._watchers.values()))

    def watch(
        self,
        operation: DelayedOperation[Key, Results],
        keys: Collection[Key],
        *,
        timeout_s: float,
        respond: Callable[[Results], Response],
    ) -> asyncio.Future[Response]:
        """Return a future of the response to what the operation finds; cancel it to give up."""
        return _Waiting(operation, respond, keys, self._watchers, timeout_s)

    def check_and_complete(self, key: Key) -> None:
        """Try every operation that watches ``key``; called after its state changed and was traced."""
        watchers = self._watchers.get(key)
        if watchers is not None:
            for waiting in tuple(watchers):
                waiting.look_at(key)

    def cancel_all(self) -> None:
        """Give up every operation: its response is never made."""
        for watchers in list(self._watchers.values()):
            for waiting in tuple(watchers):
                waiting.cancel()


class _Waiting(asyncio.Future[Any]):
    """The response to one operation, equal only to itself. No task: the caller that makes the progress makes it.

    What goes wrong meanwhile is the outcome of this request, not of the one that made the progress.
    """

    def __init__(
        self,
        operation: DelayedOperation[Any, Any],
        respond: Callable[[Any], Any],
        keys: Collection[Hashable],
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

    def look_at(self, key: Hashable) -> None:
        if self.done():
            return
        try:
            is_complete = self._operation.try_complete(key)
        except Exception as error:  # noqa: BLE001 - reported to the one that waits
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
        except Exception as error:  # noqa: BLE001 - reported to the one that waits
            self.set_exception(error)

    def _end(self) -> None:
        self._time_is_up.cancel()
        for key in self._keys:
            watchers = self._watchers[key]
            del watchers[self]
            if not watchers:
                del self._watchers[key]


_Watchers = dict[Hashable, dict[_Waiting, None]]
