"""The ensemble: elections, commits, and what neither kills nor cuts may break."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.history.zookeeper_log import EPOCH_BITS
from nemesis.interfaces.links import Link
from nemesis.reference.ports import SessionState
from nemesis.reference.zk.errors import ConnectionLossError, SessionExpiredError
from tests.nemesis.simulation.zookeeper.disturbances import COUNTED, count, disturb
from tests.nemesis.simulation.zookeeper.world import World, run

CONNECTED = SessionState.CONNECTED


def test_one_leader_is_found_and_zxids_begin_with_its_epoch() -> None:
    async def test(world: World) -> None:
        await world.leader()
        client = world.client("a")
        await client.start()
        _, stat = await client.create("/a", b"")
        assert stat.czxid == (1 << EPOCH_BITS) + 2  # after the session

    run(test)


def test_a_standalone_server_counts_from_one() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        _, stat = await client.create("/a", b"")
        assert stat.czxid == 2
        world.nodes["zookeeper-1"].kill()
        world.start("zookeeper-1")
        await client.until(SessionState.SUSPENDED)
        await client.until(CONNECTED)
        assert (await client.get("/a"))[1] == stat
        assert (await client.create("/b", b""))[1].czxid == 3

    run(test, members=1)


def test_a_cut_off_leader_is_replaced_and_cannot_commit() -> None:
    async def test(world: World) -> None:
        old = await world.leader()
        client = world.client("a", only=old, timeout_ms=30_000)
        await client.start()
        links = world.isolate(old)
        with pytest.raises((ConnectionLossError, SessionExpiredError)):
            await client.create("/lost", b"")
        await asyncio.sleep(5)
        new = await world.leader()
        assert new != old
        other = world.client("b")
        await other.start()
        await other.create("/kept", b"")
        world.network.release(links)
        await asyncio.sleep(5)
        await client.until(CONNECTED)
        assert await client.exists("/kept") is not None
        assert await client.exists("/lost") is None
        assert await world.leader() == new, "the one that came back unseated the leader"

    run(test)


def test_a_minority_serves_nobody() -> None:
    async def test(world: World) -> None:
        follower = (await world.followers())[0]
        client = world.client("a", only=follower)
        await client.start()
        world.isolate(follower)
        await client.until(SessionState.SUSPENDED)
        await asyncio.sleep(20)
        assert client.states[-1] is SessionState.SUSPENDED

    run(test)


def test_a_follower_may_lag_but_shows_a_client_its_own_writes() -> None:
    async def test(world: World) -> None:
        leader, (near, far) = await world.leader(), await world.followers()
        writer, reader = world.client("a", only=near), world.client("b", only=far)
        await writer.start()
        await reader.start()
        world.network.delay([Link(leader, far)], 0.3)
        await writer.create("/a", b"")
        assert await writer.exists("/a") is not None
        assert await reader.exists("/a") is None
        _, own = await reader.create("/b", b"")
        assert await reader.exists("/b") == own
        assert await reader.exists("/a") is not None

    run(test)


def test_a_connection_s_requests_are_answered_in_order() -> None:
    async def test(world: World) -> None:
        client = world.client("a", only=(await world.followers())[0])
        await client.start()
        done: list[str] = []

        async def note(name: str, operation: object) -> None:
            await operation  # type: ignore[misc]
            done.append(name)

        await asyncio.gather(
            note("create", client.create("/a", b"")),
            note("get", client.get("/a")),
            note("set", client.set_data("/a", b"1")),
            note("exists", client.exists("/a")),
        )
        assert done == ["create", "get", "set", "exists"]

    run(test)


def test_the_whole_ensemble_keeps_what_it_committed_over_its_death() -> None:
    async def test(world: World) -> None:
        client = world.client("a")
        await client.start()
        _, stat = await client.create("/a", b"1")
        for node in world.nodes.values():
            node.kill()
        await asyncio.sleep(1)
        for name in world.nodes:
            world.start(name)
        await client.until(SessionState.SUSPENDED)
        await client.until(CONNECTED)
        assert await client.get("/a") == (b"1", stat)
        assert client.states == [CONNECTED, SessionState.SUSPENDED, CONNECTED]

    run(test)


def test_a_paused_leader_is_replaced_and_learns_it() -> None:
    async def test(world: World) -> None:
        old = await world.leader()
        world.nodes[old].pause()
        await asyncio.sleep(5)
        assert len(world.ensemble.leaders()) == 2, "the paused one cannot know better"
        world.nodes[old].resume()
        await asyncio.sleep(5)
        assert old not in world.ensemble.leaders()

    run(test)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 200))]
)
def test_whatever_breaks_counters_never_lose_an_acknowledged_write(seed: int) -> None:
    """Clients count in one znode each by compare-and-set, while members die, pause and are cut off."""

    async def test(world: World) -> None:
        rng = Random(seed)
        clients = [world.client(name) for name in ("a", "b")]
        for client in clients:
            await client.start()
        counting = [
            asyncio.create_task(count(client, f"/count-{index}"))
            for index, client in enumerate(clients)
        ]
        first = await world.leader()
        world.nodes[first].kill()
        await asyncio.sleep(3)
        world.start(first)
        for _ in range(10):
            await disturb(world, rng)
        for name, node in world.nodes.items():
            if not node.is_alive:
                world.start(name)
        await world.leader()
        await asyncio.sleep(10)
        for task in counting:
            task.cancel()
        results = await asyncio.gather(*counting, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results), results
        for index, client in enumerate(clients):
            await client.until(CONNECTED)
            data, _ = await client.get(f"/count-{index}")
            acknowledged = COUNTED[client]
            assert acknowledged
            assert int(data) >= acknowledged[-1]
            assert acknowledged == sorted(set(acknowledged))

    COUNTED.clear()
    world = run(test, seed=seed, deviation_rate=0.02)
    zxids = [entry.zxid for entry in world.ensemble.transactions()]
    assert zxids == sorted(set(zxids))
    assert zxids[-1] >> EPOCH_BITS > 1, "there was no second election"
