"""The watches that a client has set and that have not fired yet; each fires once, in the order in which it was set."""

from __future__ import annotations

from nemesis.reference.ports import Watch
from nemesis.simulation.zookeeper.messages import Exists, GetChildren, Read, Reply, WatchKind


class ClientWatches:
    """On data (of ``get`` and ``exists``) and on children. The server has the same, and says what fires."""

    def __init__(self) -> None:
        self._of_data: dict[str, list[Watch]] = {}
        self._of_children: dict[str, list[Watch]] = {}

    def add(self, read: Read, watch: Watch, reply: Reply) -> None:
        """Set the watch of a read, if its reply says that it was set: an error sets none but that of ``exists``."""
        if not reply.error or isinstance(read, Exists):
            table = self._of_children if isinstance(read, GetChildren) else self._of_data
            table.setdefault(read.path, []).append(watch)

    def take(self, kind: WatchKind, path: str) -> list[Watch]:
        """Return those that this fires; they are set no longer."""
        fired: list[Watch] = []
        if kind is not WatchKind.CHILD:
            fired += self._of_data.pop(path, [])
        if kind in (WatchKind.DELETED, WatchKind.CHILD):
            fired += self._of_children.pop(path, [])
        return fired

    def take_all(self) -> list[Watch]:
        """Return every watch; none is set any longer."""
        tables = self._of_children, self._of_data
        watches = [watch for table in tables for some in table.values() for watch in some]
        self._of_children, self._of_data = {}, {}
        return watches
