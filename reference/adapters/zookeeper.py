"""ZooKeeper through kazoo, for a broker that lives on one asyncio loop.

kazoo keeps the connection on a thread of its own. Watches and completions reach the loop in the server's order
(``kazoo_handler``); requests and results are translated in ``kazoo_requests``.

When a session expires, kazoo's thread waits inside its state listener until the loop has failed all that was under way
and the EXPIRED listeners are done; only then does kazoo connect anew. Operations are refused on the loop while the
session is not connected: kazoo would queue them, and could send them in the next session.

Limits: no authentication, no chroot, no read-only servers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from nemesis.reference.adapters.kazoo_handler import LoopHandler
from nemesis.reference.adapters.kazoo_requests import (
    Transaction,
    read_of,
    stats_of,
    transaction_of,
    translated,
    znode_stat,
    znodes_of,
)
from nemesis.reference.ports import (
    SessionListener,
    SessionState,
    Watch,
    ZnodeReads,
    ZnodeStat,
    ZnodeWrites,
    ZooKeeperOp,
)
from nemesis.reference.zk.errors import (
    ClientClosedError,
    ConnectionLossError,
    OperationFailedError,
    SessionExpiredError,
    ZooKeeperError,
)

_logger = logging.getLogger(__name__)


class KazooZooKeeperClient:
    """``nemesis.reference.ports.ZooKeeperClient`` on a real ZooKeeper."""

    def __init__(self, hosts: str, session_timeout_ms: int, source_host: str | None) -> None:
        """``hosts`` is ``host:port,host:port``; connections are bound to ``source_host`` when it is given."""
        self._hosts = hosts
        self._session_timeout_s = session_timeout_ms / 1000
        self._source_host = source_host
        self._listeners: list[SessionListener] = []
        self._in_flight: dict[asyncio.Future[Any], str] = {}
        self._state: SessionState | None = None
        self._session_id = 0
        self._closed = False
        self._expiry_handled: threading.Event | None = None
        self._expiry_task: asyncio.Task[None] | None = None
        self._kazoo: KazooClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connected: asyncio.Event | None = None

    @property
    def session_id(self) -> int:
        """The present or last session; 0 before the first."""
        return self._session_id

    @property
    def reads(self) -> ZnodeReads:
        """This client as ``ZnodeReads``."""
        return self

    @property
    def writes(self) -> ZnodeWrites:
        """This client as ``ZnodeWrites``."""
        return self

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def start(self) -> None:
        """Connect; returns once the first session exists, however long that takes."""
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        server_count = self._hosts.count(",") + 1
        handler = LoopHandler(self._loop, self._source_host, server_count)
        self._kazoo = KazooClient(
            hosts=self._hosts,
            timeout=self._session_timeout_s,
            handler=handler,
            connection_retry=connection_retry(),
            randomize_hosts=False,
            logger=logging.getLogger("kazoo"),
        )
        self._kazoo.add_listener(self._on_kazoo_state)
        self._kazoo.start_async()
        await self._connected.wait()

    async def close(self) -> None:
        """End the session: its ephemeral znodes go at once if ZooKeeper can be reached, else when it times out."""
        if self._closed:
            return
        self._closed = True
        if self._expiry_task is not None:
            self._expiry_task.cancel()
        if self._expiry_handled is not None:
            self._expiry_handled.set()
        self._fail_in_flight(ClientClosedError)
        if self._kazoo is not None:
            await asyncio.to_thread(_stop, self._kazoo)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]:
        data, stat = await self._call(
            f"get {path}", lambda kazoo: kazoo.get_async(path, watch=_watcher(watch))
        )
        return data or b"", znode_stat(stat)

    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        return znodes_of(await self._submitted(f"get_all {paths[-1]}", read_of(paths)), paths)

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        stat = await self._call(
            f"exists {path}", lambda kazoo: kazoo.exists_async(path, watch=_watcher(watch))
        )
        return None if stat is None else znode_stat(stat)

    async def get_children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names, sorted."""
        names: list[str] = await self._call(
            f"get_children {path}",
            lambda kazoo: kazoo.get_children_async(path, watch=_watcher(watch)),
        )
        return sorted(names)

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, ZnodeStat]:
        created, stat = await self._call(
            f"create {path}",
            lambda kazoo: kazoo.create_async(
                path, data, ephemeral=ephemeral, sequence=sequential, include_data=True
            ),
        )
        return created, znode_stat(stat)

    async def set_data(self, path: str, data: bytes, version: int = -1) -> ZnodeStat:
        stat = await self._call(
            f"set_data {path}", lambda kazoo: kazoo.set_async(path, data, version)
        )
        return znode_stat(stat)

    async def delete(self, path: str, version: int = -1) -> None:
        await self._call(f"delete {path}", lambda kazoo: kazoo.delete_async(path, version))

    async def multi(self, ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
        return stats_of(await self._submitted(f"multi {ops[-1].path}", transaction_of(ops)), ops)

    async def _submitted(self, description: str, request: Transaction) -> list[Any]:
        """Send what kazoo cannot build itself."""

        def submit(kazoo: KazooClient) -> Any:
            result = kazoo.handler.async_result()
            kazoo._call(request, result)  # noqa: SLF001 — there is no public way
            return result

        results: list[Any] = await self._call(description, submit)
        return results

    async def _call(self, description: str, submit: Callable[[KazooClient], Any]) -> Any:
        """Send one request and wait for its reply; the future is failed by us when the session ends."""
        assert self._loop is not None, "start() first"
        assert self._kazoo is not None
        if self._closed:
            raise ClientClosedError(description)
        if self._state is SessionState.SUSPENDED:
            raise ConnectionLossError(description)
        if self._state is not SessionState.CONNECTED:
            raise SessionExpiredError(description)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._in_flight[future] = description
        try:
            submit(self._kazoo).rawlink(lambda result: _settle(future, result, description))
            return await future
        except ValueError as error:  # kazoo's word on a path such as /brokers/topics/..
            raise OperationFailedError(f"{description}: {error}", name="BADARGUMENTS") from error
        finally:
            self._in_flight.pop(future, None)

    def _fail_in_flight(self, error: type[ZooKeeperError]) -> None:
        for future, description in self._in_flight.items():
            if not future.done():
                future.set_exception(error(description))

    def _on_kazoo_state(self, state: str) -> None:
        """On kazoo's thread, between the reply before and the reply after the change."""
        assert self._loop is not None
        assert self._kazoo is not None
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            if state == KazooState.CONNECTED:
                session_id = self._kazoo._session_id  # noqa: SLF001 — client_id is None for a moment
                self._loop.call_soon_threadsafe(self._on_connected, session_id)
            elif state == KazooState.SUSPENDED:
                self._loop.call_soon_threadsafe(self._on_suspended)
            elif not self._closed:
                handled = threading.Event()
                self._loop.call_soon_threadsafe(self._on_expired, handled)
                handled.wait()

    def _on_connected(self, session_id: int) -> None:
        assert self._connected is not None
        self._session_id = session_id
        self._state = SessionState.CONNECTED
        self._connected.set()
        self._notify()

    def _on_suspended(self) -> None:
        # kazoo has failed every request of the broken connection before it told us.
        self._state = SessionState.SUSPENDED
        self._notify()

    def _on_expired(self, handled: threading.Event) -> None:
        self._state = SessionState.EXPIRED
        # First, or a listener that waits for such an operation would wait for ever: kazoo fails them only afterwards.
        self._fail_in_flight(SessionExpiredError)
        waits = [done for listener in self._listeners if (done := listener(self._state))]
        if self._closed:
            handled.set()
            return

        async def finish() -> None:
            try:
                await asyncio.gather(*waits, return_exceptions=True)
            finally:
                handled.set()

        self._expiry_handled = handled
        self._expiry_task = asyncio.get_running_loop().create_task(
            finish(), name="zookeeper-session-expiry"
        )

    def _notify(self) -> None:
        assert self._state is not None
        for listener in self._listeners:
            listener(self._state)


def connection_retry() -> KazooRetry:
    """How long to wait before each attempt to connect: some 0.2 s, however long ZooKeeper cannot be reached.

    kazoo multiplies each delay by a random number around ``backoff``, so that with 1 the delays dwindle to nothing.
    """
    return KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.2)


def _stop(kazoo: KazooClient) -> None:
    kazoo.stop()
    kazoo.close()


def _watcher(watch: Watch | None) -> Callable[[object], None] | None:
    return None if watch is None else lambda _event: watch()


def _settle(future: asyncio.Future[Any], result: Any, description: str) -> None:
    if future.done():
        return
    error = result.exception
    if error is None:
        future.set_result(result.value)
    else:
        future.set_exception(translated(error, description))
