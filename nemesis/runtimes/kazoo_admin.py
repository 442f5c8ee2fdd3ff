"""``ZooKeeperAdmin`` on a real ensemble, through kazoo: its calls block, so each runs in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from nemesis.reference.ports import Watch, ZnodeStat
from nemesis.runtimes.session_takeover import end_session
from nemesis.support.errors import HarnessError

SESSION_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 20.0
CONNECT_TIMEOUT_S = 5.0


class KazooAdmin:
    """Implements ``ZooKeeperAdmin``; an asynchronous context manager. Calls block in worker threads."""

    def __init__(self, hosts: str, *, session_timeout_s: float = SESSION_TIMEOUT_S) -> None:
        """``hosts`` is a connect string, ``host:port,host:port``. A member that falls silent is left after two thirds
        of the session time-out.
        """
        self._hosts = hosts
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_s,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.2),
            command_retry=KazooRetry(max_tries=3, delay=0.05, backoff=1, max_delay=0.2),
        )

    async def __aenter__(self) -> Self:
        try:
            await asyncio.to_thread(self._client.start, CONNECT_TIMEOUT_S)
        except KazooTimeoutError:
            await self._close()
            raise HarnessError(f"ZooKeeper at {self._hosts} does not answer the harness") from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, ZnodeStat] | None:
        try:
            data, stat = await self._ask(self._client.get, path, _on_loop(watch))
        except NoNodeError:
            return None
        return data, _stat(stat)

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        stat = await self._ask(self._client.exists, path, _on_loop(watch))
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        try:
            return sorted(await self._ask(self._client.get_children, path, _on_loop(watch)))
        except NoNodeError:
            return []

    async def create(self, path: str, data: bytes) -> bool:
        try:
            await self._answered(self._client.retry, self._client.create, path, data)
        except NodeExistsError:
            return False
        return True

    async def delete(self, path: str) -> bool:
        try:
            await self._answered(self._client.retry, self._client.delete, path)
        except NoNodeError:
            return False
        return True

    async def end_session(self, session_id: int) -> bool:
        return await asyncio.to_thread(end_session, self._hosts, session_id)

    async def _ask(self, read: Callable[..., Any], path: str, watch: object) -> Any:
        return await self._answered(self._client.retry, read, path, watch)

    async def _answered(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await asyncio.to_thread(call, *arguments)
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError, TimeoutError) as error:
            raise HarnessError(
                f"ZooKeeper at {self._hosts} does not answer the harness: {error!r}"
            ) from error

    async def _close(self) -> None:
        await asyncio.to_thread(self._client.stop)
        await asyncio.to_thread(self._client.close)


def _on_loop(watch: Watch | None) -> Callable[[object], None] | None:
    """kazoo fires watches on a thread of its own."""
    if watch is None:
        return None
    loop, fire = asyncio.get_running_loop(), watch

    def hand_over(_event: object) -> None:
        loop.call_soon_threadsafe(fire)

    return hand_over


def _stat(stat: Any) -> ZnodeStat:
    return ZnodeStat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        ephemeral_owner=stat.ephemeralOwner,
        ctime_ms=stat.ctime,
    )
