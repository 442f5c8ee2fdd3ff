"""The harness's own way to the simulated ZooKeeper: to look, to watch, to end somebody's session.

It speaks as a client from outside of the system, so it is past every link rule and belongs to no node. A member that is
paused, or cut off from its leader, would tell it nothing or what was true long ago: it leaves such a member and reads
from another one. Sessions are
ended as on a real ensemble (``nemesis.runtimes.session_takeover``): attach to the session, close it; the owner's
connection goes, and a member tells it that the session is over when it comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from types import TracebackType
from typing import Final, Self, TypeVar

from nemesis.reference.ports import SessionState, Watch, ZnodeStat
from nemesis.reference.zk.errors import (
    ConnectionLossError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from nemesis.simulation.zookeeper.channel import FROM_MEMBER, Channel, dial
from nemesis.simulation.zookeeper.client import SimulatedZooKeeperClient
from nemesis.simulation.zookeeper.ensemble import SimulatedEnsemble
from nemesis.simulation.zookeeper.messages import (
    CloseSession,
    Connect,
    Connected,
    FromMember,
    Reply,
    Request,
)
from nemesis.support.errors import HarnessError

SESSION_TIMEOUT_MS: Final = 20_000
CALL_TIMEOUT_S: Final = 20.0
CONNECT_TIMEOUT_S: Final = 30.0
ATTACH_TIMEOUT_S: Final = 3.0
READ_TIMEOUT_S: Final = 1.0
LAG_S: Final = 0.1
"""What was committed that long ago is known to every member that hears its leader."""
ATTEMPTS: Final = 20
PAUSE_S: Final = 0.05
_T = TypeVar("_T")


class SimulatedZooKeeperAdmin:
    """``nemesis.runtimes.kazoo_admin.ZooKeeperAdmin``; an asynchronous context manager."""

    def __init__(
        self,
        ensemble: SimulatedEnsemble,
        *,
        rng: Random | None = None,
        source_host: str | None = None,
    ) -> None:
        """``source_host`` is an address that no link rule knows; None is the loop's own."""
        self._ensemble = ensemble
        self._hosts = ensemble.connect_string
        self._source_host = source_host
        self._client = SimulatedZooKeeperClient(
            self._hosts, SESSION_TIMEOUT_MS, source_host, rng or Random(0)
        )
        self._changed = asyncio.Event()
        self._client.add_session_listener(self._on_state)

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._client.start()
        except TimeoutError:
            await self._client.close()
            raise HarnessError("the simulated ZooKeeper does not answer the harness") from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat] | None:
        """Return data and stat, None when the znode is absent; raises ``HarnessError``."""
        try:
            return await self._patiently(lambda: self._client.get(path, watch))
        except NoNodeError:
            return None

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """Return the stat, None when the znode is absent; raises ``HarnessError``."""
        return await self._patiently(lambda: self._client.exists(path, watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return the names, sorted; none when the znode is absent. Raises ``HarnessError``."""
        try:
            return await self._patiently(lambda: self._client.get_children(path, watch))
        except NoNodeError:
            return []

    async def create(self, path: str, data: bytes) -> bool:
        """Create a persistent znode; return whether it was not there. Raises ``HarnessError``."""
        try:
            await self._patiently(lambda: self._client.create(path, data))
        except NodeExistsError:
            return False
        return True

    async def delete(self, path: str) -> bool:
        """Delete a znode; return whether it existed. Raises ``HarnessError``."""
        try:
            await self._patiently(lambda: self._client.delete(path))
        except NoNodeError:
            return False
        return True

    async def end_session(self, session_id: int) -> bool:
        """Close the session at once; return whether we ended it (False: it was over, or no member could be asked)."""
        may_be_closed = False
        for address in self._hosts.split(",") * ATTEMPTS:
            host, _, port = address.rpartition(":")
            ended = await self._attach_and_close((host, int(port)), session_id)
            if ended is None:
                # It broke off, perhaps after the request to close: then a later attempt finds the session over.
                may_be_closed = True
                await asyncio.sleep(PAUSE_S)
                continue
            return ended or may_be_closed
        return False

    async def _attach_and_close(self, address: tuple[str, int], session_id: int) -> bool | None:
        """Return whether we closed the session, False when it is over, None when the connection broke off."""
        answers: asyncio.Queue[FromMember | None] = asyncio.Queue()
        channel: Channel | None = None
        try:
            async with asyncio.timeout(ATTACH_TIMEOUT_S):
                channel = await dial(
                    address,
                    self._source_host,
                    FROM_MEMBER,
                    lambda _, message: answers.put_nowait(message),
                    lambda _: answers.put_nowait(None),
                )
                # Both at once: the owner reconnects within milliseconds and takes its session back.
                channel.send(Connect(session_id, round(ATTACH_TIMEOUT_S * 1000)))
                channel.send(Request(1, CloseSession()))
                attached = await answers.get()
                if isinstance(attached, Connected) and attached.session_id == 0:
                    return False
                reply = await answers.get() if attached is not None else None
        except (OSError, TimeoutError):
            return None
        finally:
            if channel is not None:
                channel.close()
        if not isinstance(reply, Reply):
            return None
        return not any(outcome.error for outcome in reply.outcomes)

    async def _patiently(self, read: Callable[[], Awaitable[_T]]) -> _T:
        """Ask again whenever the connection is lost or the member lags; raises ``HarnessError`` in the end."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                while True:
                    self._changed.clear()
                    try:
                        async with asyncio.timeout(READ_TIMEOUT_S):
                            if not self._is_late():
                                return await read()
                    except (ConnectionLossError, SessionExpiredError):
                        await self._changed.wait()
                        continue
                    except TimeoutError:
                        pass  # nobody there
                    self._client.leave()
                    await self._changed.wait()
        except TimeoutError:
            raise HarnessError("the simulated ZooKeeper does not answer the harness") from None

    def _is_late(self) -> bool:
        """Whether the member that is read from does not know what others do."""
        address = self._client.address
        return address is not None and self._ensemble.has_news_for(
            f"{address[0]}:{address[1]}", age_s=LAG_S
        )

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._changed.set()
