"""The simulated network: streams, deaths, pauses, and links that are held, delayed and reset."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.simulation.links import LATENCIES
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.network import HARNESS, Network
from nemesis.simulation.randomness import stream
from tests.nemesis.simulation.two_nodes import BACK, PORT, THERE, A, B, World, two_nodes


def frame(api_key: int, body: bytes = b"") -> bytes:
    content = api_key.to_bytes(2) + body
    return len(content).to_bytes(4) + content


@pytest.fixture
def world() -> Iterator[World]:
    yield from two_nodes()


def test_bytes_go_both_ways_and_take_time(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            assert writer.get_extra_info("peername") == (B, PORT)
            assert writer.get_extra_info("sockname")[0] == A
            sent_at = world.loop.time()
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"HELLO"
            assert 100e-6 <= world.loop.time() - sent_at <= 20e-3

    world.run(main)
    assert world.said() == ["connected", b"hello"]


def test_order_is_kept_on_a_connection(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            expected = b"".join(b"<%d>" % number for number in range(500))
            for number in range(500):
                writer.write(b"<%d>" % number)
            assert await reader.readexactly(len(expected)) == expected

    world.run(main)


def test_nobody_listening_refuses(world: World) -> None:
    async def main() -> None:
        with pytest.raises(ConnectionRefusedError, match=r"10\.0\.0\.2"):
            await asyncio.open_connection(B, 1)
        assert world.loop.time() > 0

    world.run(main)


def test_an_address_can_be_listened_at_once_and_port_0_is_a_free_one(world: World) -> None:
    async def main() -> None:
        with pytest.raises(OSError, match="already in use"):
            await asyncio.start_server(print, B, PORT)
        first = await asyncio.start_server(print, B, 0)
        second = await asyncio.start_server(print, B, 0)
        ports = [server.sockets[0].getsockname()[1] for server in (first, second)]
        assert len({PORT, *ports}) == 3
        first.close()
        await first.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(B, ports[0])
        await asyncio.start_server(print, B, ports[0])

    world.run(main)


def test_a_killed_listener_frees_its_port_and_ends_its_connections(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            writer.write(b"last")
            await asyncio.sleep(1)
            world.b.kill()
            assert await reader.read() == b"LAST"
            writer.write(b"into the void")
            await asyncio.sleep(1)
            writer.write(b"again")
            with pytest.raises(OSError, match=r"Connection lost|Broken pipe"):
                await writer.drain()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(B, PORT)
        world.b.start(world.listen)
        async with world.connected():
            await asyncio.sleep(1)

    world.run(main)
    assert world.said()[:3] == ["connected", b"last", "connected"]


def test_a_process_killed_with_bytes_unread_resets_its_connection(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.b.pause()
            writer.write(b"never read")
            await asyncio.sleep(1)
            world.b.kill()
            with pytest.raises(ConnectionResetError):
                await reader.read()

    world.run(main)


def test_a_paused_process_accepts_but_does_not_answer(world: World) -> None:
    async def main() -> None:
        world.b.pause()
        async with world.connected() as (reader, writer):
            writer.write(b"early")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await reader.read(1)
            assert world.said() == []
            world.b.resume()
            assert await reader.readexactly(5) == b"EARLY"

    world.run(main)


@pytest.mark.parametrize("link", [THERE, BACK])
def test_a_held_link_keeps_bytes_until_the_release(world: World, link: Link) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.network.hold([link])
            writer.write(b"one")
            await asyncio.sleep(1)
            writer.write(b"two")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(10):
                    await reader.read(1)
            assert (b"one" in world.said()) == (link == BACK)
            released_at = world.loop.time()
            world.network.release([link])
            assert await reader.readexactly(6) == b"ONETWO"
            assert world.loop.time() - released_at < 0.1
            counted = world.network.counters([link, Link("b", "c")])
            assert counted == {link: LinkCounters(6, 6), Link("b", "c"): LinkCounters(0, 0)}

    world.run(main)


def test_the_last_words_of_the_dead_are_delivered_after_the_release(world: World) -> None:
    async def speak() -> None:
        _, writer = await asyncio.open_connection(B, PORT)
        await asyncio.sleep(1)
        world.network.hold([THERE])
        writer.write(b"stale")
        await asyncio.sleep(100)

    async def main() -> None:
        world.a.start(speak)
        await asyncio.sleep(2)
        world.a.kill()
        await asyncio.sleep(20)
        assert world.said() == ["connected"]
        world.network.release([THERE])
        await asyncio.sleep(1)

    world.run(main)
    assert world.said()[:3] == ["connected", b"stale", "eof"]


@pytest.mark.parametrize("link", [THERE, BACK])
def test_a_connection_over_a_held_link_is_made_at_the_release(world: World, link: Link) -> None:
    async def main() -> None:
        world.network.hold([link])
        connecting = asyncio.create_task(asyncio.open_connection(B, PORT, local_addr=(A, 0)))
        await asyncio.sleep(10)
        assert not connecting.done()
        assert world.said() == []
        world.network.release([link])
        _, writer = await connecting
        writer.close()

    world.run(main)


def test_a_connection_that_was_given_up_while_held_was_never_there(world: World) -> None:
    async def main() -> None:
        world.network.hold([THERE])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.open_connection(B, PORT, local_addr=(A, 0))
        world.network.release([THERE])
        await asyncio.sleep(1)

    world.run(main)
    assert world.said() == []


def test_a_caller_killed_while_it_connects_was_never_there(world: World) -> None:
    async def call() -> None:
        await asyncio.open_connection(B, PORT)

    async def main() -> None:
        world.network.hold([THERE])
        world.a.start(call)
        await asyncio.sleep(1)
        world.a.kill()
        world.network.release([THERE])
        await asyncio.sleep(1)

    world.run(main)
    assert world.said() == []


def test_an_api_key_is_held_with_all_that_comes_behind_it(world: World) -> None:
    produce, fetch = Link("a", "b", 0), Link("a", "b", 1)

    async def main() -> None:
        async with world.connected() as (reader, writer):
            world.network.hold([fetch])
            writer.write(frame(0, b"first"))
            writer.write(frame(1, b"second") + frame(0, b"third"))
            await asyncio.sleep(1)
            world.network.release([fetch])
            await asyncio.sleep(1)
            await reader.readexactly(11 + 12 + 11)

    world.run(main)
    early = b"".join(
        label for label, index in world.heard if isinstance(label, bytes) and index < 1
    )
    late = b"".join(
        label for label, index in world.heard if isinstance(label, bytes) and index >= 1
    )
    assert early == frame(0, b"first")
    assert late == frame(1, b"second") + frame(0, b"third")
    counted = world.network.counters([produce, fetch, THERE])
    assert counted == {
        THERE: LinkCounters(34, 0),
        produce: LinkCounters(22, 0),
        fetch: LinkCounters(12, 23),
    }


def test_a_link_of_a_node_to_itself_is_never_held(world: World) -> None:
    async def main() -> None:
        world.network.hold([Link("b", "b")])
        reader, writer = await asyncio.open_connection(B, PORT, local_addr=(B, 0))
        writer.write(b"me")
        assert await reader.readexactly(2) == b"ME"
        writer.close()

    world.run(main)


def test_a_delayed_link_is_slow_and_stays_in_order(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            start = world.loop.time()
            world.network.delay([THERE], 2.0)
            writer.write(b"slow")
            world.network.delay([THERE], 0.0)
            writer.write(b"fast")
            assert await reader.readexactly(8) == b"SLOWFAST"
            assert 2.0 < world.loop.time() - start < 2.1

    world.run(main)


def test_a_reset_link_breaks_both_ends_of_its_connections(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, _):
            await asyncio.sleep(1)
            assert world.network.reset([BACK]) == 2
            with pytest.raises(ConnectionResetError):
                await reader.read()
            assert world.network.reset([BACK]) == 0
        async with world.connected():
            await asyncio.sleep(1)

    world.run(main)
    assert world.said()[:3] == ["connected", ConnectionResetError, "connected"]


def test_reading_can_be_paused(world: World) -> None:
    async def main() -> None:
        reader, writer = await asyncio.open_connection(B, PORT, limit=10)
        for _ in range(50):
            writer.write(b"x" * 20)
            await asyncio.sleep(0.01)
        assert not writer.transport.is_reading()  # type: ignore[attr-defined]
        assert await reader.readexactly(1000) == b"X" * 1000
        writer.close()
        await writer.wait_closed()

    world.run(main)


def test_the_same_seed_gives_the_same_latencies() -> None:
    def latencies(seed: int) -> list[float]:
        loop = SimulationLoop()
        Network(loop, stream(seed, "network"))
        arrivals: list[float] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1):
                arrivals.append(loop.time())
            writer.close()

        async def main() -> None:
            server = await asyncio.start_server(serve, port=1)
            _, writer = await asyncio.open_connection("localhost", 1)
            for _ in range(20):
                writer.write(b".")
                await asyncio.sleep(0.1)
            writer.close()
            server.close()
            await server.wait_closed()

        loop.run_until_complete(main())
        loop.close()
        return arrivals

    assert latencies(1) == latencies(1) != latencies(2)


def test_a_slow_network_is_slow_between_nodes_and_not_for_the_harness() -> None:
    loop = SimulationLoop(Schedule(1, 0.0))
    network = Network(loop, stream(1, "network"), LATENCIES["slow"])
    for host, node in ((A, "a"), (B, "b"), ("10.0.0.9", HARNESS)):
        network.register(host, node)
    took_s: dict[str, float] = {}

    async def main() -> None:
        await asyncio.start_server(lambda _, writer: writer.close(), B, PORT)
        for host in (A, "10.0.0.9"):
            began = loop.time()
            _, writer = await asyncio.open_connection(B, PORT, local_addr=(host, 0))
            took_s[host] = loop.time() - began
            writer.close()

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    assert took_s[A] >= 4e-3
    assert took_s["10.0.0.9"] <= 15e-3
    assert took_s["10.0.0.9"] < took_s[A]
