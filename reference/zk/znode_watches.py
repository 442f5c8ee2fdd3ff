"""Who wants to know when a znode changes, and whether ZooKeeper will tell.

A ZooKeeper watch is set by a read and fires once. A handler stays registered for its path; each read of the path sets
the watch again unless it is set already. A watch that is lost with its connection fires, too: whoever reads the znode
in the handler therefore misses nothing. Source: the handlers of kafka.zookeeper.ZooKeeperClient.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nemesis.reference.ports import Watch

_T = TypeVar("_T")
Handler = Callable[[], None]


class ZnodeWatches:
    """The handlers of one kind of watch (on data and existence, or on children), by path."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._armed: set[str] = set()

    def register(self, path: str, handler: Handler) -> None:
        self._handlers[path] = handler

    def unregister(self, path: str) -> None:
        """A watch that is set stays set; when it fires nobody is called."""
        self._handlers.pop(path, None)

    def has_to_be_set(self, path: str) -> bool:
        """Whether the next read of the path has to set the watch."""
        return path in self._handlers and path not in self._armed

    async def read(self, path: str, operation: Callable[[Watch | None], Awaitable[_T]]) -> _T:
        """Run a read, giving it the watch if one has to be set; the operation's errors pass through."""
        if not self.has_to_be_set(path):
            return await operation(None)
        self._armed.add(path)
        try:
            return await operation(lambda: self._fire(path))
        except BaseException:
            self._armed.discard(path)
            raise

    def _fire(self, path: str) -> None:
        self._armed.discard(path)
        handler = self._handlers.get(path)
        if handler is not None:
            handler()
