"""Requests that leave the order of their connection: copied, overtaken and lost, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from nemesis.interfaces.links import Link, LinkCounters
from tests.nemesis.simulation.two_nodes import World, two_nodes

CONTROL = Link("a", "b", 4)


def frame(api_key: int, body: bytes) -> bytes:
    content = api_key.to_bytes(2) + body
    return len(content).to_bytes(4) + content


FIRST, SECOND, OTHER = frame(4, b"first"), frame(4, b"second"), frame(1, b"other")


@pytest.fixture
def world() -> Iterator[World]:
    yield from two_nodes()


def requests_heard(world: World) -> list[bytes]:
    return [label for label in world.said() if isinstance(label, bytes)]


def test_a_copy_arrives_late_on_a_connection_of_its_own(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            world.network.copy([CONTROL], 3.0)
            writer.write(FIRST[:5])
            await asyncio.sleep(0.5)
            writer.write(FIRST[5:])
            await asyncio.sleep(0.5)
            writer.write(OTHER)
            world.network.copy([CONTROL], 0.0)
            writer.write(SECOND)
            await asyncio.sleep(1.0)
            assert world.network.astray([CONTROL]) == 1
            await asyncio.sleep(10.0)
            assert await reader.readexactly(30)
        await asyncio.sleep(1.0)

    world.run(main)
    assert b"".join(requests_heard(world)) == FIRST + OTHER + SECOND + FIRST
    times = [time for label, time in world.heard if label == FIRST]
    assert len(times) == 1, "the original came in two pieces, the copy in one"
    assert 3.5 < times[0] < 3.6
    assert world.said().count("connected") == 2
    assert world.said().count("eof") == 2
    assert world.network.astray([CONTROL]) == 0
    assert world.network.counters([CONTROL])[CONTROL].copies == 1


def test_a_copy_for_a_node_that_is_down_is_lost(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (_, writer):
            world.network.copy([CONTROL], 2.0)
            writer.write(FIRST)
            await asyncio.sleep(1.0)
            world.b.kill()
            await asyncio.sleep(5.0)

    world.run(main)
    assert requests_heard(world) == [FIRST]
    assert world.network.counters([CONTROL])[CONTROL].copies == 0
    assert world.network.astray([CONTROL]) == 0


def test_later_connections_overtake_a_stranded_one(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (_, writer):
            await asyncio.sleep(0.1)
            world.network.strand([CONTROL])
            writer.write(OTHER)
            writer.write(FIRST)
            await asyncio.sleep(1.0)
        async with world.connected() as (_, writer):
            writer.write(SECOND)
            await asyncio.sleep(1.0)
            assert requests_heard(world) == [OTHER, SECOND]
            assert world.network.astray([CONTROL]) == 1
            world.network.rejoin([CONTROL], is_abandoned_lost=False)
            await asyncio.sleep(1.0)

    world.run(main)
    assert requests_heard(world) == [OTHER, SECOND, FIRST]
    assert world.network.astray([CONTROL]) == 0
    counted = world.network.counters([CONTROL])[CONTROL]
    assert counted == LinkCounters(len(FIRST) + len(SECOND), len(FIRST))


def test_what_its_sender_has_given_up_is_lost_with_the_connection(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (_, abandoned), world.connected() as (_, kept):
            await asyncio.sleep(0.1)
            world.network.strand([CONTROL])
            abandoned.write(FIRST)
            kept.write(SECOND)
            await asyncio.sleep(1.0)
            abandoned.close()
            await asyncio.sleep(1.0)
            assert requests_heard(world) == []
            world.network.rejoin([CONTROL], is_abandoned_lost=True)
            await asyncio.sleep(1.0)

    world.run(main)
    assert requests_heard(world) == [SECOND]
    assert ConnectionResetError in world.said()
