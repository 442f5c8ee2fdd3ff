"""The same seed gives the same history; and it is no product of the simulation's loop: a real one carries it, too."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from random import Random

from nemesis.simulation.zookeeper.client import SimulatedZooKeeperClient
from nemesis.simulation.zookeeper.ensemble import SimulatedEnsemble
from tests.nemesis.simulation.zookeeper.disturbances import count, disturb
from tests.nemesis.simulation.zookeeper.world import World, run

PROGRAM = "from tests.nemesis.simulation.zookeeper.test_repeatable import tell; print(tell(5))"


def tell(seed: int) -> str:
    """Return everything that a disturbed run committed and how it went."""

    async def test(world: World) -> None:
        clients = [world.client(name) for name in ("a", "b")]
        for client in clients:
            await client.start()
        counting = [asyncio.create_task(count(client, "/count")) for client in clients]
        for _ in range(4):
            await disturb(world, world.rng)
        for task in counting:
            task.cancel()

    world = run(test, seed=seed, deviation_rate=0.05)
    entries = [
        (entry.zxid, entry.session, entry.cxid, entry.wall_ms, str(entry.operations))
        for entry in world.ensemble.transactions()
    ]
    return f"{world.loop.callbacks} {world.loop.time()} {entries}"


def test_the_same_seed_gives_the_same_history_in_any_process() -> None:
    reported = tell(5)
    assert reported != tell(6)
    assert reported == tell(5)
    elsewhere = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.strip() == reported


def test_it_runs_on_a_real_loop() -> None:
    async def test() -> None:
        hosts = {f"zookeeper-{number}": f"127.0.0.{number}:47181" for number in (1, 2, 3)}
        ensemble = SimulatedEnsemble(hosts, rng=Random(1), tick_time_ms=100)
        members = [asyncio.create_task(ensemble.main(node)) for node in hosts]
        client = SimulatedZooKeeperClient(ensemble.connect_string, 2_000, "127.0.0.9", Random(2))
        await client.start()
        path, stat = await client.create("/a", b"1", ephemeral=True)
        assert (path, stat.ephemeral_owner) == ("/a", client.session_id)
        assert await ensemble.probe("zookeeper-2", source_host=None, timeout_s=5)
        await client.close()
        for member in members:
            member.cancel()
        await asyncio.gather(*members, return_exceptions=True)
        # A connection that was just being accepted is a task of asyncio's own.
        if accepting := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(accepting, timeout=5)

    asyncio.run(asyncio.wait_for(test(), 30))
