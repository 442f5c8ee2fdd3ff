"""Clients that count in a znode, and faults that disturb the ensemble meanwhile."""

from __future__ import annotations

import asyncio
from random import Random

from nemesis.interfaces.links import Link
from nemesis.reference.zk.errors import ZooKeeperError
from tests.nemesis.simulation.zookeeper.world import RecordingClient, World

COUNTED: dict[RecordingClient, list[int]] = {}


async def count(client: RecordingClient, path: str) -> None:
    acknowledged = COUNTED[client] = []
    while True:
        try:
            if await client.exists(path) is None:
                await client.create(path, b"0")
            data, stat = await client.get(path)
            await client.set_data(path, str(int(data) + 1).encode(), stat.version)
            acknowledged.append(int(data) + 1)
        except ZooKeeperError:
            pass
        await asyncio.sleep(0.1)


async def disturb(world: World, rng: Random) -> None:
    """Break something, wait, and mend it; sometimes two things at once."""
    name = rng.choice([*world.nodes])
    node = world.nodes[name]
    pause_s = rng.uniform(0.1, 6)
    match rng.choice(("kill", "pause", "isolate", "one way", "reset")):
        case "kill":
            node.kill()
            await asyncio.sleep(pause_s)
            world.start(name)
        case "pause":
            node.pause()
            await asyncio.sleep(pause_s)
            node.resume()
        case "isolate":
            links = world.isolate(name)
            await asyncio.sleep(pause_s)
            world.network.release(links)
        case "one way":
            peer = rng.choice([other for other in world.nodes if other != name])
            world.network.hold([Link(name, peer)])
            await asyncio.sleep(pause_s)
            world.network.release([Link(name, peer)])
        case "reset":
            peer = rng.choice([other for other in world.nodes if other != name])
            world.network.reset([Link(name, peer), Link(peer, name)])
            await asyncio.sleep(pause_s / 4)
