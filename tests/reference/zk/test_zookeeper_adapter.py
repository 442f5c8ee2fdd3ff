"""The ZooKeeper adapter against a real server: order, errors, watches, session expiry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from kazoo.retry import ForceRetryError

from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient, connection_retry
from nemesis.reference.ports import Check, Create, Delete, SessionState, SetData
from nemesis.reference.zk.errors import (
    BadVersionError,
    MultiError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
)
from tests.reference.session_expiry import expire


@asynccontextmanager
async def client(address: str, timeout_ms: int = 10_000) -> AsyncIterator[KazooZooKeeperClient]:
    zookeeper = KazooZooKeeperClient(address, timeout_ms, "127.0.0.1")
    await zookeeper.start()
    try:
        yield zookeeper
    finally:
        await zookeeper.close()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_reads_back_what_it_wrote_with_the_stat(zookeeper_address: str) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as zookeeper:
            path, created = await zookeeper.create("/a", b"1", ephemeral=True)
            written = await zookeeper.set_data("/a", b"2", 0)
            data, stat = await zookeeper.get("/a")
            assert (path, data, stat) == ("/a", b"2", written)
            assert stat.version == 1
            assert stat.czxid == created.czxid < stat.mzxid
            assert stat.ephemeral_owner == zookeeper.session_id != 0

    run(test())


def test_each_refusal_has_its_error(zookeeper_address: str) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as zookeeper:
            await zookeeper.create("/a", b"")
            await zookeeper.create("/a/b", b"")
            with pytest.raises(NodeExistsError):
                await zookeeper.create("/a", b"")
            with pytest.raises(NoNodeError):
                await zookeeper.get("/missing")
            with pytest.raises(BadVersionError):
                await zookeeper.set_data("/a", b"", 7)
            with pytest.raises(NotEmptyError):
                await zookeeper.delete("/a")
            assert await zookeeper.exists("/missing") is None

    run(test())


def test_a_multi_is_all_or_nothing_and_names_the_first_failure(zookeeper_address: str) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as zookeeper:
            await zookeeper.create("/a", b"")
            check, created, written, deleted = await zookeeper.multi(
                [Check("/a", 0), Create("/b", b"x"), SetData("/a", b"y", 0), Delete("/b")]
            )
            assert (check, deleted) == (None, None)
            assert created is not None
            assert written is not None
            assert (created.version, written.version) == (0, 1)
            assert created.czxid == written.mzxid
            with pytest.raises(MultiError) as refused:
                await zookeeper.multi([Create("/c", b""), Check("/a", 0), Create("/d", b"")])
            assert refused.value.index == 1
            assert isinstance(refused.value.error, BadVersionError)
            assert await zookeeper.get_children("/") == ["a", "zookeeper"]

    run(test())


def test_a_watch_arrives_before_any_reply_that_shows_the_change(zookeeper_address: str) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as reader, client(zookeeper_address) as writer:
            await writer.create("/a", b"0")
            for number in range(1, 200):
                arrivals: list[str] = []
                await reader.get("/a", partial(arrivals.append, "watch"))
                write = asyncio.create_task(writer.set_data("/a", str(number).encode()))
                while not arrivals:
                    data, _ = await reader.get("/a")
                    assert data == str(number - 1).encode() or arrivals
                await write

    run(test())


def test_the_expiry_is_finished_before_the_next_session_opens(zookeeper_address: str) -> None:
    async def test() -> None:
        async with client(zookeeper_address) as zookeeper:
            states: list[tuple[SessionState | str, int]] = []
            again = asyncio.Event()
            lost = asyncio.get_running_loop().create_future()
            zookeeper.add_session_listener(listener := Listener(zookeeper, states, again))
            old = zookeeper.session_id
            await zookeeper.create("/own", b"", ephemeral=True)
            # A watch is lost with its connection, which fires it.
            await zookeeper.get("/", lambda: None if lost.done() else lost.set_result(None))
            await asyncio.to_thread(expire, zookeeper_address, old)
            await again.wait()
            new = zookeeper.session_id
            assert new != old
            assert states == [
                (SessionState.SUSPENDED, old),
                (SessionState.EXPIRED, old),
                ("finished", old),
                (SessionState.CONNECTED, new),
            ]
            assert listener.refused
            assert await zookeeper.exists("/own") is None
            await lost

    run(test())


class Listener:
    """Notes every state; on EXPIRED finishes only after an operation was refused and some turns of the loop."""

    def __init__(
        self,
        zookeeper: KazooZooKeeperClient,
        states: list[tuple[SessionState | str, int]],
        again: asyncio.Event,
    ) -> None:
        self.zookeeper = zookeeper
        self.states = states
        self.again = again
        self.refused = False

    def __call__(self, state: SessionState) -> Coroutine[Any, Any, None] | None:
        self.states.append((state, self.zookeeper.session_id))
        if state is SessionState.CONNECTED:
            self.again.set()
        return self.finish() if state is SessionState.EXPIRED else None

    async def finish(self) -> None:
        with pytest.raises(SessionExpiredError):
            await self.zookeeper.get("/")
        self.refused = True
        for _ in range(20):
            await asyncio.sleep(0)
        self.states.append(("finished", self.zookeeper.session_id))


def test_who_cannot_connect_does_not_try_ever_faster() -> None:
    delays: list[float] = []

    def attempt() -> None:
        if len(delays) < 500:
            raise ForceRetryError

    retry = connection_retry()
    retry.sleep_func = delays.append
    retry(attempt)
    assert min(delays) >= 0.03
    assert sum(delays[250:]) / 250 >= 0.15
