"""A machine without power: silence, lost buffers, and resets from a kernel that knows nothing of the past."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from nemesis.runtimes.simulation import SimulationRuntime, SimulationRuntimeConfig
from nemesis.simulation.loop import SimulationLoop
from nemesis.simulation.memory_record import MemoryRecord
from tests.nemesis.simulation.two_nodes import BACK, PORT, THERE, A, B, World, two_nodes


@pytest.fixture
def world() -> Iterator[World]:
    yield from two_nodes()


def cut_the_power(world: World) -> None:
    world.network.power_off("b")
    world.b.kill()


def boot(world: World) -> None:
    world.network.power_on("b")
    world.b.start(world.listen)


async def assert_silent(reader: asyncio.StreamReader, seconds: float = 30.0) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await reader.read(1)


def test_the_peer_sees_silence_then_a_reset_when_it_sends_after_the_reboot(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            cut_the_power(world)
            await assert_silent(reader)
            boot(world)
            await assert_silent(reader)
            assert not writer.is_closing()
            writer.write(b"hello?")
            with pytest.raises(ConnectionResetError):
                async with asyncio.timeout(0.1):
                    await reader.read(1)

    world.run(main)


def test_what_was_sent_in_vain_is_sent_again_until_it_is_answered_with_a_reset(
    world: World,
) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            cut_the_power(world)
            writer.write(b"hello?")
            await assert_silent(reader, 30)
            boot(world)
            with pytest.raises(ConnectionResetError):
                async with asyncio.timeout(31):
                    await reader.read(1)

    world.run(main)
    assert b"hello?" not in world.said()


def test_bytes_on_their_way_to_it_count_as_unanswered(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            writer.write(b"late")
            cut_the_power(world)
            await asyncio.sleep(1)
            boot(world)
            with pytest.raises(ConnectionResetError):
                async with asyncio.timeout(2):
                    await reader.read(1)

    world.run(main)


def test_bytes_it_left_unread_bring_no_reset(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.b.pause()
            writer.write(b"in its kernel's buffer")
            await asyncio.sleep(1)
            cut_the_power(world)
            boot(world)
            await assert_silent(reader)

    world.run(main)


def test_what_a_held_link_kept_of_it_is_lost(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.network.hold([BACK])
            writer.write(b"one")
            await asyncio.sleep(1)
            assert world.said() == ["connected", b"one"]
            cut_the_power(world)
            world.network.release([BACK])
            await assert_silent(reader)

    world.run(main)


def test_what_an_earlier_process_of_it_left_on_a_held_link_is_lost_too(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.network.hold([BACK])
            writer.write(b"one")
            await asyncio.sleep(1)
            world.b.kill()
            world.b.start(world.listen)
            cut_the_power(world)
            world.network.release([BACK])
            await assert_silent(reader)

    world.run(main)


def test_what_others_keep_for_it_is_answered_with_a_reset(world: World) -> None:
    async def main() -> None:
        async with world.connected() as (reader, writer):
            await asyncio.sleep(1)
            world.network.hold([THERE])
            writer.write(b"one")
            cut_the_power(world)
            await asyncio.sleep(5)
            boot(world)
            await assert_silent(reader)
            world.network.release([THERE])
            with pytest.raises(ConnectionResetError):
                async with asyncio.timeout(0.1):
                    await reader.read(1)

    world.run(main)
    assert b"one" not in world.said()


def test_a_caller_hangs_until_its_time_out(world: World) -> None:
    async def main() -> None:
        cut_the_power(world)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(20):
                await asyncio.open_connection(B, PORT, local_addr=(A, 0))
        boot(world)
        await asyncio.sleep(60)

    world.run(main)
    assert world.said() == []


def test_a_caller_that_has_patience_is_answered_after_the_reboot(world: World) -> None:
    async def main() -> None:
        cut_the_power(world)
        calling = asyncio.create_task(asyncio.open_connection(B, PORT, local_addr=(A, 0)))
        await asyncio.sleep(5)
        assert not calling.done()
        boot(world)
        async with asyncio.timeout(6):
            _, writer = await calling
        writer.close()

    world.run(main)


def test_a_machine_that_is_up_without_the_process_refuses(world: World) -> None:
    async def main() -> None:
        cut_the_power(world)
        world.network.power_on("b")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(B, PORT)

    world.run(main)


def test_a_broker_without_power_does_not_answer_until_it_runs_again() -> None:
    loop = SimulationLoop()
    runtime = SimulationRuntime(
        SimulationRuntimeConfig(broker_count=1, client_count=0, zookeeper_count=1),
        loop,
        MemoryRecord(loop.clock_ns),
    )
    broker = runtime.cluster.address("broker-1")

    async def seconds_until_refused() -> float:
        called_at = loop.time()
        with pytest.raises((ConnectionRefusedError, TimeoutError)):
            async with asyncio.timeout(10):
                await asyncio.open_connection(broker.host, broker.port)
        return loop.time() - called_at

    async def main() -> None:
        await runtime.lifecycle.start()
        await runtime.processes.kill("broker-1")
        assert await seconds_until_refused() < 0.1
        assert (await runtime.processes.restart("broker-1"))["answered"]
        cut = await runtime.disks.power.cut("broker-1")
        assert cut["dead"]
        assert await seconds_until_refused() == pytest.approx(10)
        assert (await runtime.processes.restart("broker-1"))["answered"]

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
