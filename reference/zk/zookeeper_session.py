"""Operations that outlive a lost connection, and who wants to know what becomes of the session.

* **Retry** (``retry_request_until_connected``): an operation whose connection broke is asked again once the same
  session is connected, for as long as the session lives, never in another one.
* **Watches** (``znode_watches``): a change handler is registered for a path, and a read of that path sets the watch.

When a session expires the port opens the next one by itself; the same ``ZooKeeperSession`` then speaks of that.
Source: kafka.zookeeper.ZooKeeperClient of Kafka 3.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from nemesis.reference.ports import SessionState, ZnodeStat, ZooKeeperClient
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk.errors import (
    ClientClosedError,
    ConnectionLossError,
    NoNodeError,
    SessionExpiredError,
)
from nemesis.reference.zk.znode_watches import Handler, ZnodeWatches

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")

StateChangeHandler = Callable[[SessionState], Awaitable[None] | None]


class ZooKeeperSession:
    """See the module. Errors are those of ``nemesis.reference.zk.errors``."""

    def __init__(self, zookeeper: ZooKeeperClient, *, tracer: Tracer) -> None:
        self.reads = zookeeper.reads
        """Reads that are not retried, or that set a watch of their own."""
        self.writes = zookeeper.writes
        """Writes that are not retried."""
        self._zookeeper = zookeeper
        self._tracer = tracer
        self._state = SessionState.CONNECTED
        self._session_changes: list[asyncio.Event] = []
        self._state_change_handlers: list[StateChangeHandler] = []
        self._data_watches = ZnodeWatches()
        self._child_watches = ZnodeWatches()
        zookeeper.add_session_listener(self._on_session_state)

    @property
    def session_id(self) -> int:
        return self._zookeeper.session_id

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        """What the handler returns for EXPIRED is awaited before the next session opens."""
        self._state_change_handlers.append(handler)

    def register_znode_change_handler(self, path: str, handler: Handler) -> None:
        """Call the handler when the znode is created, deleted or written; armed by the next read of it."""
        self._data_watches.register(path, handler)

    def register_znode_child_change_handler(self, path: str, handler: Handler) -> None:
        """Call the handler when children come or go; armed by the next listing."""
        self._child_watches.register(path, handler)

    def unregister_znode_change_handler(self, path: str) -> None:
        self._data_watches.unregister(path)

    def unregister_znode_child_change_handler(self, path: str) -> None:
        self._child_watches.unregister(path)

    async def retry_request_until_connected(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Return the request's result, asking again after every lost connection while the session lives."""
        while True:
            try:
                return await request()
            except ConnectionLossError:
                await self.wait_until_connected()

    async def wait_until_connected(self) -> None:
        """Raises ``SessionExpiredError`` as soon as the session is over."""
        while self._state is not SessionState.CONNECTED:
            if self._state is SessionState.EXPIRED:
                raise SessionExpiredError("waiting for the connection")
            await self.next_session_change()

    async def retry_across_sessions(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Return the request's result, asking again in the next session whenever one expires.

        Only for what rests on nothing that a session holds: finding or creating persistent znodes at start-up.
        """
        while True:
            try:
                return await request()
            except ClientClosedError:
                raise
            except SessionExpiredError as error:
                _logger.info("asking again in the next session: %s", error)
                while self._state is not SessionState.CONNECTED:
                    await self.next_session_change()

    async def next_session_change(self) -> None:
        """Return when the session's state changes next."""
        change = asyncio.Event()
        self._session_changes.append(change)
        await change.wait()

    # Operations, each retried

    async def get(self, path: str) -> tuple[bytes, ZnodeStat]:
        return await self.retry_request_until_connected(
            lambda: self._data_watches.read(path, lambda watch: self.reads.get(path, watch))
        )

    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        """What each holds, None where there is no znode. Those with a watch to be set are read by themselves."""
        znodes: dict[str, tuple[bytes, ZnodeStat] | None] = {}
        unwatched = [path for path in paths if not self._data_watches.has_to_be_set(path)]
        if unwatched:
            read = await self.retry_request_until_connected(lambda: self.reads.get_all(unwatched))
            znodes.update(zip(unwatched, read, strict=True))
        for path in paths:
            if path not in znodes:
                with suppress(NoNodeError):
                    znodes[path] = await self.get(path)
        return [znodes.get(path) for path in paths]

    async def exists(self, path: str) -> ZnodeStat | None:
        return await self.retry_request_until_connected(
            lambda: self._data_watches.read(path, lambda watch: self.reads.exists(path, watch))
        )

    async def get_children(self, path: str) -> list[str]:
        return await self.retry_request_until_connected(
            lambda: self._child_watches.read(
                path, lambda watch: self.reads.get_children(path, watch)
            )
        )

    async def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> ZnodeStat:
        _, stat = await self.retry_request_until_connected(
            lambda: self.writes.create(path, data, ephemeral=ephemeral)
        )
        return stat

    async def set_data(self, path: str, data: bytes, version: int) -> ZnodeStat:
        """Compare and set; after a lost reply one's own write looks like a conflict."""
        return await self.retry_request_until_connected(
            lambda: self.writes.set_data(path, data, version)
        )

    def _on_session_state(self, state: SessionState) -> Awaitable[None] | None:
        self._state = state
        self._tracer.event(Kind.SESSION_STATE, session=self.session_id, session_state=state.value)
        changes, self._session_changes = self._session_changes, []
        for change in changes:
            change.set()
        waits = [done for handler in self._state_change_handlers if (done := handler(state))]
        if not waits:
            return None

        async def all_done() -> None:
            for done in waits:
                await done

        return all_done()
