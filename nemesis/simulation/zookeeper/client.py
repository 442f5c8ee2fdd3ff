"""``nemesis.reference.ports.ZooKeeperClient`` on the simulated ensemble; behaves as the adapter on kazoo does.

One task connects, again and again, and waits for the loss of each connection; everything else happens in the callbacks
of the connection, in the order in which the member sent it. What a caller is told when a connection breaks: the
operations under way fail, then listeners hear SUSPENDED, then every watch fires. That a session has expired is known
only from a member that says so, however long nobody could be reached.

Silence: after a third of the session's time-out without a request a ping is sent; when nothing at all has come for as
long again the connection is given up. Source: ``kazoo.protocol.connection`` and
``nemesis.reference.adapters.zookeeper``.

Unlike the adapter, each client tries the members in an order of its own, as Java clients do: brokers that all sat on
the first member would never read from one that lags behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

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
    MultiError,
    SessionExpiredError,
    ZooKeeperError,
)
from nemesis.simulation.zookeeper.channel import FROM_MEMBER, Channel, ask, dial
from nemesis.simulation.zookeeper.client_watches import ClientWatches
from nemesis.simulation.zookeeper.messages import (
    CloseSession,
    Code,
    Connect,
    Connected,
    CreateOp,
    DeleteOp,
    Exists,
    Fired,
    Get,
    GetAll,
    GetChildren,
    Ping,
    Pong,
    Read,
    Reply,
    Request,
    SetDataOp,
    Write,
    WriteOp,
)
from nemesis.simulation.zookeeper.translation import failure, part_of

RETRY_DELAY_S: Final = (0.03, 0.07)
PING_JITTER_S: Final = (0.01, 0.4)
LONGEST_CLOSE_S: Final = 10.0


@dataclass(slots=True)
class _Pending:
    xid: int
    description: str
    future: asyncio.Future[Reply]
    read: Read | None
    watch: Watch | None


class SimulatedZooKeeperClient:
    """See the module. ``rng`` decides the order of the members and the jitter of pings and retries."""

    def __init__(
        self, hosts: str, session_timeout_ms: int, source_host: str | None, rng: Random
    ) -> None:
        """``hosts`` is ``host:port,host:port``; connections are bound to ``source_host`` when it is given."""
        self._addresses = [_address(host) for host in hosts.split(",")]
        rng.shuffle(self._addresses)
        self._session_timeout_ms = session_timeout_ms
        self._source_host = source_host
        self._rng = rng
        self._listeners: list[SessionListener] = []
        self._state: SessionState | None = None
        self._session_id = 0
        self._attached_id = 0
        """The session to ask for; 0 after an expiry, while ``session_id`` still tells the old one."""
        self._last_zxid = 0
        self._closed = False
        self._channel: Channel | None = None
        self._address: tuple[str, int] | None = None
        self._task: asyncio.Task[None] | None = None
        self._expiry: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._disconnected = asyncio.Event()
        self._xid = 0
        self._pending: deque[_Pending] = deque()
        self._watches = ClientWatches()
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = self._heard_at = 0.0
        self._pinged_at: float | None = None
        self._pause_s = 0.0

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
        """Have every change of state told, from now on."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Connect; returns once the first session exists, however long that takes."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="zookeeper-client")
        await self._connected.wait()

    @property
    def address(self) -> tuple[str, int] | None:
        """The member that it is connected to."""
        return None if self._channel is None else self._address

    def leave(self) -> None:
        """Give the present connection up; the next member is tried, and the session goes on there."""
        if (channel := self._channel) is not None:
            channel.abort()
            self._lost(channel)

    async def close(self) -> None:
        """End the session: its ephemeral znodes go at once if ZooKeeper can be reached, else when it times out."""
        if self._closed:
            return
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        self._fail_pending(ClientClosedError)
        if self._task is None:
            return
        self._say_goodbye()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(LONGEST_CLOSE_S, self._session_timeout_ms / 1000)):
                await asyncio.wait([self._task])
        self._task.cancel()
        if self._channel is not None:
            self._channel.abort()
        self._stop_pinging()

    # Operations

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat]:
        """Raises ``NoNodeError``; then the watch is not set."""
        reply = await self._read(f"get {path}", Get(path, watch is not None), watch)
        if reply.error or reply.data is None or reply.stat is None:
            raise failure(reply.error, f"get {path}")
        return reply.data, reply.stat

    async def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, ZnodeStat] | None]:
        """What each holds at one moment, None where there is no znode."""
        reply = await self._call(f"get_all {paths[-1]}", GetAll(tuple(paths)))
        return list(reply.znodes)

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """Sets the watch whether the znode exists or not."""
        reply = await self._read(f"exists {path}", Exists(path, watch is not None), watch)
        return reply.stat

    async def get_children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names, sorted. Raises ``NoNodeError``; then the watch is not set."""
        body = GetChildren(path, watch is not None)
        reply = await self._read(f"get_children {path}", body, watch)
        if reply.error:
            raise failure(reply.error, f"get_children {path}")
        return list(reply.names)

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, ZnodeStat]:
        """Return the path, which has a number at its end if it is sequential, and the stat."""
        outcome = await self._write(
            f"create {path}", CreateOp(path, bytes(data), ephemeral, sequential)
        )
        assert outcome.path is not None
        assert outcome.stat is not None
        return outcome.path, outcome.stat

    async def set_data(self, path: str, data: bytes, version: int = -1) -> ZnodeStat:
        """Return the stat after the write."""
        outcome = await self._write(f"set_data {path}", SetDataOp(path, bytes(data), version))
        assert outcome.stat is not None
        stat: ZnodeStat = outcome.stat
        return stat

    async def delete(self, path: str, version: int = -1) -> None:
        """Raises ``NotEmptyError`` when there are children."""
        await self._write(f"delete {path}", DeleteOp(path, version))

    async def multi(self, ops: Sequence[ZooKeeperOp]) -> list[ZnodeStat | None]:
        """All or nothing: the stat left by each Create and SetData, None for the others. Raises ``MultiError``."""
        description = f"multi {ops[-1].path}"
        reply = await self._call(description, Write(tuple(map(part_of, ops)), is_multi=True))
        for index, outcome in enumerate(reply.outcomes):
            if outcome.error not in (Code.OK, Code.RUNTIME_INCONSISTENCY):
                raise MultiError(index, failure(outcome.error, ops[index].path))
        return [outcome.stat for outcome in reply.outcomes]

    async def _read(self, description: str, body: Read, watch: Watch | None) -> Reply:
        return await self._call(description, body, watch)

    async def _write(self, description: str, op: WriteOp) -> Any:
        reply = await self._call(description, Write((op,)))
        outcome = reply.outcomes[0]
        if outcome.error == Code.SESSION_EXPIRED:
            raise SessionExpiredError(description)
        if outcome.error:
            raise failure(outcome.error, description)
        return outcome

    async def _call(
        self, description: str, body: Read | GetAll | Write, watch: Watch | None = None
    ) -> Reply:
        """Send one request and wait for its reply; the future is failed when the connection or the session ends."""
        if self._closed:
            raise ClientClosedError(description)
        if self._state is SessionState.SUSPENDED:
            raise ConnectionLossError(description)
        if self._state is not SessionState.CONNECTED:
            raise SessionExpiredError(description)
        loop = asyncio.get_running_loop()
        read = None if isinstance(body, (Write, GetAll)) else body
        future: asyncio.Future[Reply] = loop.create_future()
        self._send(body, _Pending(self._xid + 1, description, future, read, watch))
        return await future

    def _send(self, body: Read | GetAll | Write | CloseSession, pending: _Pending | None) -> None:
        assert self._channel is not None
        self._xid += 1
        if pending is not None:
            self._pending.append(pending)
        self._sent_at = asyncio.get_running_loop().time()
        self._channel.send(Request(self._xid, body))

    def _fail_pending(self, error: type[ZooKeeperError]) -> None:
        for pending in self._pending:
            if not pending.future.done():
                pending.future.set_exception(error(pending.description))

    # The connection

    async def _run(self) -> None:
        """Connect to one member after the other, until closed."""
        while True:
            for address in self._addresses:
                await self._attempt(address)
                if self._closed:
                    return
            await asyncio.sleep(self._rng.uniform(*RETRY_DELAY_S))

    async def _attempt(self, address: tuple[str, int]) -> None:
        """One connection, from the call to the loss."""
        timeout_s = self._session_timeout_ms / 1000
        channel: Channel | None = None
        try:
            async with asyncio.timeout(timeout_s):
                channel = await dial(
                    address, self._source_host, FROM_MEMBER, self._receive, self._lost
                )
            question = Connect(self._attached_id, self._session_timeout_ms, self._last_zxid)
            async with asyncio.timeout(timeout_s / len(self._addresses)):
                answer = await ask(channel, question)
        except (OSError, TimeoutError):
            if channel is not None:
                channel.abort()
            return
        if not isinstance(answer, Connected) or not channel.is_open:
            channel.abort()
        elif answer.session_id == 0:
            channel.close()
            await self._expire()
        else:
            self._address = address
            self._attach(channel, answer)
            await self._disconnected.wait()

    def _attach(self, channel: Channel, answer: Connected) -> None:
        loop = asyncio.get_running_loop()
        channel.receive, channel.lost = self._receive, self._lost
        self._channel = channel
        self._session_id = self._attached_id = answer.session_id
        self._session_timeout_ms = answer.timeout_ms
        self._xid = 0
        self._state = SessionState.CONNECTED
        self._sent_at = self._heard_at = loop.time()
        self._pinged_at = None
        self._disconnected.clear()
        if self._closed:
            self._say_goodbye()
            return
        self._await_silence()
        self._connected.set()
        self._notify()

    def _say_goodbye(self) -> None:
        if self._state is SessionState.CONNECTED:
            self._send(CloseSession(), None)

    def _lost(self, _channel: Channel) -> None:
        """The connection is gone; the session may live on."""
        self._stop_pinging()
        self._channel = None
        self._fail_pending(ConnectionLossError)
        self._pending.clear()
        self._state = SessionState.SUSPENDED
        self._disconnected.set()
        if not self._closed:
            self._notify()
            self._call_soon(self._watches.take_all())  # they are lost with the connection

    async def _expire(self) -> None:
        """Return when the listeners are done with the old session."""
        self._state = SessionState.EXPIRED
        self._attached_id = self._last_zxid = 0
        if self._closed:
            return
        waits = [done for listener in self._listeners if (done := listener(self._state))]

        async def finish() -> None:
            await asyncio.gather(*waits, return_exceptions=True)

        loop = asyncio.get_running_loop()
        self._expiry = loop.create_task(finish(), name="zookeeper-session-expiry")
        await asyncio.wait([self._expiry])
        self._expiry = None

    def _notify(self) -> None:
        assert self._state is not None
        for listener in self._listeners:
            listener(self._state)

    # What members send

    def _receive(self, _channel: Channel, message: Any) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        match message:
            case Reply():
                self._settle(message)
            case Fired(kind, path):
                fired = self._watches.take(kind, path)
                if not self._closed:
                    self._call_soon(fired)
            case Pong():
                self._pinged_at = None

    def _settle(self, reply: Reply) -> None:
        self._last_zxid = max(self._last_zxid, reply.zxid)
        if not self._pending or self._pending[0].xid != reply.xid:
            return  # of the request to close
        pending = self._pending.popleft()
        if pending.watch is not None and pending.read is not None:
            self._watches.add(pending.read, pending.watch, reply)
        if not pending.future.done():
            pending.future.set_result(reply)

    def _call_soon(self, watches: list[Watch]) -> None:
        # Queued behind the reply before it, whose waiter is only woken, too.
        loop = asyncio.get_running_loop()
        for watch in watches:
            loop.call_soon(watch)

    # Pings

    def _await_silence(self) -> None:
        jitter = self._rng.uniform(*PING_JITTER_S)
        self._pause_s = max(self._session_timeout_ms / 3000 - jitter, jitter)
        self._set_timer()

    def _set_timer(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._sent_at + self._pause_s, self._break_silence)

    def _break_silence(self) -> None:
        now = asyncio.get_running_loop().time()
        channel = self._channel
        assert channel is not None, "pings end with the connection"
        if self._pinged_at is not None and self._heard_at <= self._pinged_at:
            self.leave()
        elif now < self._sent_at + self._pause_s:
            self._set_timer()
        else:
            self._pinged_at = self._sent_at = now
            channel.send(Ping())
            self._await_silence()

    def _stop_pinging(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _address(host_and_port: str) -> tuple[str, int]:
    host, _, port = host_and_port.rpartition(":")
    return host, int(port)
