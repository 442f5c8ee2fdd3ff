"""What the harness itself wants of ZooKeeper, past every link rule: to look, to watch, to create and delete, and to end
a session.

``nemesis.runtimes.kazoo_admin`` implements it for a real ensemble, ``nemesis.simulation.zookeeper.admin`` for the
simulated one. An absent znode is an answer here, not an error. Watches are those of ZooKeeper: a read sets one, and it
fires once, also when the connection is lost.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from nemesis.reference.ports import Watch, ZnodeStat


class ZooKeeperAdmin(Protocol):
    """Every method raises ``HarnessError`` when ZooKeeper does not answer the harness."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    async def get(
        self, path: str, watch: Watch | None = None
    ) -> tuple[bytes, ZnodeStat] | None: ...
    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None: ...
    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names, sorted; none when the znode is absent (then no watch is set)."""

    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode as an operator does; return whether it was not there."""

    async def delete(self, path: str) -> bool:
        """Delete a znode without children as an operator does; return whether it existed."""

    async def end_session(self, session_id: int) -> bool:
        """Close somebody's session at once; return whether we ended it (False: it was over, or could not be)."""
