"""ZooKeeper through kazoo, for a broker that lives on one asyncio loop.

kazoo keeps the connection on a thread of its own and normally runs watches and completions on two more, which lets a
reply overtake the watch that the server sent before it. Here both of kazoo's queues are one shim that hands the call to
the loop, so that the loop sees everything in the server's order.

When a session expires, kazoo's thread waits inside its state listener until the loop has failed all that was under way
and the EXPIRED listeners are done; only then does kazoo connect anew. Operations are refused on the loop while the
session is not connected: kazoo would queue them, and could send them in the next session.

Limits: no authentication, no chroot, no read-only servers.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from reference.ports import (
    Check,
    Create,
    Delete,
    SessionListener,
    SessionState,
    SetData,
    Watch,
    ZnodeStat,
    ZooKeeperOp,
)
from reference.zk.errors import (
    BadVersionError,
    ClientClosedError,
    ConnectionLossError,
    MultiError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationFailedError,
    SessionExpiredError,
    ZooKeeperError,
)

_logger = logging.getLogger(__name__)

_FAILURES: dict[type[Exception], type[OperationFailedError]] = {
    kazoo_errors.NoNodeError: NoNodeError,
    kazoo_errors.NodeExistsError: NodeExistsError,
    kazoo_errors.BadVersionError: BadVersionError,
    kazoo_errors.NotEmptyError: NotEmptyError,
}
# What ZooKeeper puts in place of the operations around the one that failed.
_ROLLED_BACK = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


class KazooZooKeeperClient:
    """``reference.ports.ZooKeeperClient`` on a real ZooKeeper."""

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

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def start(self) -> None:
        """Connect; returns once the first session exists, however long that takes."""
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        server_count = self._hosts.count(",") + 1
        handler = _LoopHandler(self._loop, self._source_host, server_count)
        retry = KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.2)
        self._kazoo = KazooClient(
            hosts=self._hosts,
            timeout=self._session_timeout_s,
            handler=handler,
            connection_retry=retry,
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
        return data or b"", _stat(stat)

    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        read = _MultiRead([serialization.GetData(path, False) for path in paths])
        results = await self._submitted(f"get_all {paths[-1]}", read)
        return [_znode(result, path) for result, path in zip(results, paths, strict=True)]

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        stat = await self._call(
            f"exists {path}", lambda kazoo: kazoo.exists_async(path, watch=_watcher(watch))
        )
        return None if stat is None else _stat(stat)

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
        return created, _stat(stat)

    async def set_data(self, path: str, data: bytes, version: int = -1) -> ZnodeStat:
        stat = await self._call(
            f"set_data {path}", lambda kazoo: kazoo.set_async(path, data, version)
        )
        return _stat(stat)

    async def delete(self, path: str, version: int = -1) -> None:
        await self._call(f"delete {path}", lambda kazoo: kazoo.delete_async(path, version))

    async def multi(self, ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
        transaction = _Transaction([_request(op) for op in ops])
        results = await self._submitted(f"multi {ops[-1].path}", transaction)
        for index, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, _ROLLED_BACK):
                raise MultiError(index, _failure(result, ops[index].path))
        return [None if result is None else _stat(result) for result in results]

    async def _submitted(self, what: str, request: _Transaction) -> list[Any]:
        """Send what kazoo cannot build itself."""

        def submit(kazoo: KazooClient) -> Any:
            result = kazoo.handler.async_result()
            kazoo._call(request, result)  # noqa: SLF001 — there is no public way
            return result

        results: list[Any] = await self._call(what, submit)
        return results

    async def _call(self, what: str, submit: Callable[[KazooClient], Any]) -> Any:
        """Send one request and wait for its reply; the future is failed by us when the session ends."""
        assert self._loop is not None, "start() first"
        assert self._kazoo is not None
        if self._closed:
            raise ClientClosedError(what)
        if self._state is SessionState.SUSPENDED:
            raise ConnectionLossError(what)
        if self._state is not SessionState.CONNECTED:
            raise SessionExpiredError(what)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._in_flight[future] = what
        submit(self._kazoo).rawlink(lambda result: _settle(future, result, what))
        try:
            return await future
        finally:
            self._in_flight.pop(future, None)

    def _fail_in_flight(self, error: type[ZooKeeperError]) -> None:
        for future, what in self._in_flight.items():
            if not future.done():
                future.set_exception(error(what))

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


class _LoopQueue:
    """Stands for both of kazoo's work queues: whatever is put in runs on the loop, in the order of the puts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def put(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)


class _LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threading handler without its two worker threads."""

    running = True

    def __init__(
        self, loop: asyncio.AbstractEventLoop, source_host: str | None, server_count: int
    ) -> None:
        super().__init__()
        self._source_host = source_host
        self._server_count = server_count
        self.completion_queue = self.callback_queue = _LoopQueue(loop)

    def start(self) -> None:
        """There is nothing to start: the loop runs already."""

    def stop(self) -> None:
        """There is nothing to stop; calls under way still reach the loop."""

    def create_connection(
        self, address: tuple[str, int], timeout: float | None = None, **_tls: object
    ) -> socket.socket:
        """Connect within a share of the session time-out, as ZooKeeper's own client does.

        kazoo would spend all of it on one server that cannot be reached, and the session would end meanwhile.
        """
        share = None if timeout is None else timeout / self._server_count
        source = None if self._source_host is None else (self._source_host, 0)
        connection = socket.create_connection(address, timeout=share, source_address=source)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class _Transaction:
    """A multi whose creates are create2, so that their stats (and with them the zxid) come back."""

    type: ClassVar = serialization.Transaction.type

    def __init__(self, operations: Sequence[Any]) -> None:
        self.operations = operations

    def serialize(self) -> bytes:
        return bytes(serialization.Transaction(self.operations).serialize())

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """One result for each operation: kazoo's ZnodeStat, data with a ZnodeStat, None or an exception."""
        results: list[Any] = []
        header, offset = serialization.MultiHeader.deserialize(data, offset)
        while not header.done:
            result: Any = None
            if header.type == serialization.Create2.type:
                _, offset = serialization.read_string(data, offset)
            if header.type in (serialization.Create2.type, serialization.SetData.type):
                fields = serialization.stat_struct.unpack_from(data, offset)
                result = serialization.ZnodeStat._make(fields)
                offset += serialization.stat_struct.size
            elif header.type == serialization.GetData.type:
                data_read, offset = serialization.read_buffer(data, offset)
                fields = serialization.stat_struct.unpack_from(data, offset)
                result = data_read, serialization.ZnodeStat._make(fields)
                offset += serialization.stat_struct.size
            elif header.type == -1:
                (error,) = serialization.int_struct.unpack_from(data, offset)
                result = kazoo_errors.EXCEPTIONS[error]()
                offset += serialization.int_struct.size
            results.append(result)
            header, offset = serialization.MultiHeader.deserialize(data, offset)
        return results


class _MultiRead(_Transaction):
    """Reads of several znodes in one request (ZooKeeper 3.6 and newer): looks like a multi, and none undoes another."""

    type: ClassVar = 22


def _stop(kazoo: KazooClient) -> None:
    kazoo.stop()
    kazoo.close()


def _request(op: ZooKeeperOp) -> Any:
    match op:
        case Create(path, data, ephemeral):
            return serialization.Create2(path, data, OPEN_ACL_UNSAFE, int(ephemeral))
        case SetData(path, data, version):
            return serialization.SetData(path, data, version)
        case Delete(path, version):
            return serialization.Delete(path, version)
        case Check(path, version):
            return serialization.CheckVersion(path, version)


def _watcher(watch: Watch | None) -> Callable[[object], None] | None:
    return None if watch is None else lambda _event: watch()


def _stat(stat: Any) -> ZnodeStat:
    return ZnodeStat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        ephemeral_owner=stat.ephemeralOwner,
        ctime_ms=stat.ctime,
    )


def _znode(result: Any, path: str) -> tuple[bytes, ZnodeStat] | None:
    if isinstance(result, kazoo_errors.NoNodeError):
        return None
    if isinstance(result, Exception):
        raise _failure(result, path)
    data, stat = result
    return data or b"", _stat(stat)


def _settle(future: asyncio.Future[Any], result: Any, what: str) -> None:
    if future.done():
        return
    error = result.exception
    if error is None:
        future.set_result(result.value)
    else:
        future.set_exception(_translate(error, what))


def _translate(error: Exception, what: str) -> ZooKeeperError:
    if isinstance(error, kazoo_errors.ConnectionClosedError):
        # Closing, or kazoo between two connections: in either case it was never sent.
        return ConnectionLossError(what)
    if isinstance(error, kazoo_errors.SessionExpiredError):
        return SessionExpiredError(what)
    if isinstance(error, kazoo_errors.ConnectionLoss):
        return ConnectionLossError(what)
    return _failure(error, what)


def _failure(error: Exception, what: str) -> OperationFailedError:
    for theirs, ours in _FAILURES.items():
        if isinstance(error, theirs):
            return ours(what)
    return OperationFailedError(f"{what}: {error!r}", name=type(error).__name__.upper())
