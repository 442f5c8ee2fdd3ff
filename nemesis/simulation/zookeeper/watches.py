"""A member's watches: who is to be told when a znode changes.

A watch belongs to a connection, is set by a read and fires once. A deleted znode tells those that watch its data or its
children, each connection once. Source: ``WatchManager`` and ``DataTree`` of ZooKeeper 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from nemesis.history.zookeeper_log import CREATES, Transaction, TransactionType
from nemesis.simulation.zookeeper.messages import WatchKind
from nemesis.simulation.zookeeper.tree import parent_of

Watcher = TypeVar("Watcher")
_Table = dict[str, dict[Watcher, None]]


class Watches(Generic[Watcher]):
    """``tell`` is called with the watcher, what happened, and the path."""

    def __init__(self, tell: Callable[[Watcher, WatchKind, str], None]) -> None:
        self._tell = tell
        self._data: _Table[Watcher] = {}
        self._children: _Table[Watcher] = {}

    def watch_data(self, path: str, watcher: Watcher) -> None:
        self._data.setdefault(path, {})[watcher] = None

    def watch_children(self, path: str, watcher: Watcher) -> None:
        self._children.setdefault(path, {})[watcher] = None

    def forget(self, watcher: Watcher) -> None:
        """Drop the watches of a connection that is gone."""
        for table in (self._data, self._children):
            for path in [path for path, watchers in table.items() if watcher in watchers]:
                del table[path][watcher]
                if not table[path]:
                    del table[path]

    def trigger(self, transaction: Transaction) -> None:
        """Tell of everything that an applied transaction changed, in its order."""
        for kind, path in _changes(transaction):
            if kind is WatchKind.CHILD:
                self._fire(self._children.pop(path, {}), kind, path)
                continue
            watchers = self._data.pop(path, {})
            if kind is WatchKind.DELETED:
                watchers |= self._children.pop(path, {})
            self._fire(watchers, kind, path)

    def _fire(self, watchers: dict[Watcher, None], kind: WatchKind, path: str) -> None:
        for watcher in watchers:
            self._tell(watcher, kind, path)


def _changes(transaction: Transaction) -> Iterator[tuple[WatchKind, str]]:
    for path in transaction.closed_paths or ():
        yield WatchKind.DELETED, path
        yield WatchKind.CHILD, parent_of(path)
    parts = transaction.operations
    if any(part.type == TransactionType.ERROR for part in parts):
        return
    for part in parts:
        assert part.path is not None
        if part.type == TransactionType.SET_DATA:
            yield WatchKind.CHANGED, part.path
        elif part.type != TransactionType.CHECK:
            yield WatchKind.CREATED if part.type in CREATES else WatchKind.DELETED, part.path
            yield WatchKind.CHILD, parent_of(part.path)
