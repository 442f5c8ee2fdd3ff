"""Sessions: what clients are told when members, links and time take something from them."""

from __future__ import annotations

import asyncio

import pytest

from nemesis.history.zookeeper_log import TransactionType
from nemesis.interfaces.links import Link
from nemesis.reference.ports import SessionState
from nemesis.reference.zk.errors import ConnectionLossError, SessionExpiredError
from nemesis.simulation.zookeeper.member import SESSION_ID_MEMBER_SHIFT
from tests.nemesis.simulation.zookeeper.world import World, run

CONNECTED, SUSPENDED, EXPIRED = (
    SessionState.CONNECTED,
    SessionState.SUSPENDED,
    SessionState.EXPIRED,
)


def test_a_client_that_nobody_hears_of_loses_its_session_and_learns_it_when_it_is_back() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        old = client.session_id
        await client.create("/own", b"", ephemeral=True)
        links = world.isolate("a", *world.nodes)
        began = world.loop.time()
        async with world.admin() as admin:
            while await admin.exists("/own") is not None:
                await asyncio.sleep(0.05)
        # The time-out, and at most the tick in which the leader looks.
        assert 3.0 < world.loop.time() - began < 4.0 + 1.5
        assert client.states == [CONNECTED, SUSPENDED]
        world.network.release(links)
        await client.until(CONNECTED)
        assert client.states == [CONNECTED, SUSPENDED, EXPIRED, CONNECTED]
        assert client.session_id != old

    world = run(test)
    (closed,) = [
        entry
        for entry in world.ensemble.transactions()
        if entry.type == TransactionType.CLOSE_SESSION and entry.closed_paths
    ]
    assert (closed.cxid, closed.closed_paths) == (0, ("/own",))


def test_a_session_survives_the_death_of_its_member() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        session = client.session_id
        await client.create("/own", b"", ephemeral=True)
        for name in [*world.nodes]:
            world.nodes[name].kill()
            await world.leader()
            await asyncio.sleep(2)
            assert await client.exists("/own") is not None
            world.start(name)
            await asyncio.sleep(2)
        assert client.session_id == session
        assert EXPIRED not in client.states
        assert SUSPENDED in client.states

    run(test)


def test_an_idle_client_keeps_its_session_with_every_member() -> None:
    async def test(world: World) -> None:
        clients = [world.client(name, only=name) for name in world.nodes]
        await world.leader()
        for client in clients:
            await client.start()
        await asyncio.sleep(60)
        assert [client.states for client in clients] == [[CONNECTED]] * 3

    run(test)


def test_silence_suspends_before_the_session_is_over() -> None:
    async def test(world: World) -> None:
        client = world.client("a", timeout_ms=6_000)
        await client.start()
        world.isolate("a", *world.nodes)
        began = world.loop.time()
        await client.until(SUSPENDED)
        assert 1.0 < world.loop.time() - began < 4.1
        with pytest.raises(ConnectionLossError):
            await client.get("/")

    run(test)


def test_a_lost_connection_fails_what_is_under_way_then_tells_then_fires_the_watches() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        observed: list[str] = []
        client.add_session_listener(lambda state: observed.append(state.value))
        await client.get("/", lambda: observed.append("watch"))

        async def write() -> None:
            try:
                await client.create("/a", b"")
            except ConnectionLossError:
                observed.append("failed")

        for name in world.nodes:
            world.network.hold([Link(name, "a")])
        writer = asyncio.create_task(write())
        await writer
        await asyncio.sleep(0)
        # The writer was woken before the listeners were called, but runs after them.
        assert sorted(observed) == ["failed", "suspended", "watch"]
        assert observed.index("suspended") < observed.index("watch")
        async with world.admin() as admin:
            assert await admin.exists("/a") is not None  # it happened, unheard

    run(test)


def test_ending_a_session_is_a_close_that_its_owner_hears_of_when_it_is_back() -> None:
    async def test(world: World) -> None:
        client = world.client("a", timeout_ms=30_000)
        await client.start()
        old = client.session_id
        await client.create("/own", b"", ephemeral=True)
        async with world.admin() as admin:
            assert await admin.end_session(old)
            while await admin.exists("/own") is not None:  # the member that is asked may lag
                await asyncio.sleep(0.001)
            assert not await admin.end_session(old)
            assert not await admin.end_session(12345)
        while client.session_id == old:
            await asyncio.sleep(0.01)
        # Another member may have taken it in once more before the session was closed.
        assert client.states[-3:] == [SUSPENDED, EXPIRED, CONNECTED]
        closed = [
            entry
            for entry in world.ensemble.transactions()
            if entry.type == TransactionType.CLOSE_SESSION and entry.session == old
        ]
        assert [(entry.cxid, entry.closed_paths) for entry in closed] == [(1, ("/own",))]

    run(test)
    run(test, members=1)


def test_the_expiry_is_finished_before_the_next_session_opens() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        reported: list[str] = []

        async def finish() -> None:
            with pytest.raises(SessionExpiredError):
                await client.get("/")
            await asyncio.sleep(5)
            reported.append("finished")

        def listen(state: SessionState) -> asyncio.Future[None] | None:
            reported.append(state.value)
            return asyncio.ensure_future(finish()) if state is EXPIRED else None

        client.add_session_listener(listen)
        old = client.session_id
        async with world.admin() as admin:
            await admin.end_session(old)
        while client.session_id == old:
            await asyncio.sleep(0.01)
        assert reported == ["suspended", "expired", "finished", "connected"]

    run(test)


def test_closing_takes_the_ephemerals_along_at_once_and_refuses_what_comes_later() -> None:
    async def test(world: World) -> None:
        client, other = world.client("a"), world.client("b")
        await client.start()
        await other.start()
        await client.create("/own", b"", ephemeral=True)
        gone = asyncio.Event()
        await other.exists("/own", gone.set)
        began = world.loop.time()
        await client.close()
        await gone.wait()
        assert world.loop.time() - began < 0.1
        with pytest.raises(SessionExpiredError):
            await client.get("/")

    run(test)


def test_a_client_that_has_seen_more_is_sent_to_a_member_that_knows_it() -> None:
    async def test(world: World) -> None:
        reader = world.client("a")
        await reader.start()
        leader = await world.leader()
        lagging = next(
            name
            for name in await world.followers()
            if not name.endswith(str(reader.session_id >> SESSION_ID_MEMBER_SHIFT))
        )
        world.network.hold([Link(leader, lagging)])
        _, written = await reader.create("/a", b"")
        world.isolate("a", *(name for name in world.nodes if name != lagging))
        # Only the lagging member can be reached, and would show a world without /a.
        await reader.until(SUSPENDED)
        await asyncio.sleep(0.5)
        assert reader.states[-1] is SUSPENDED
        assert written.czxid

    run(test)
