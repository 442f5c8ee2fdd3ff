"""Two topics are created, grown, moved and deleted at random, while brokers die, stall, lose sessions and are cut off.

Whatever was going on: when the faults are over it comes to its end, every replica of every topic that is left is in
sync, and what is sent to it is committed.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from nemesis.interfaces.links import Link
from tests.nemesis.simulation.administered_cluster import Cluster, simulate

TOPICS = ("a", "b")
OPERATIONS = 25
FAULTS = 12


async def administer(cluster: Cluster, rng: Random) -> None:
    client = cluster.client
    for _ in range(OPERATIONS):
        topic, partition = rng.choice(TOPICS), rng.randrange(4)
        match rng.choice(
            ["create", "create", "delete", "delete", "grow", "send", "move", "cancel"]
        ):
            case "create":
                await cluster.try_once(
                    client.create_topic(
                        topic,
                        partitions=rng.randint(1, 3),
                        replication_factor=rng.choice([2, 3]),
                        timeout_s=2.0,
                    )
                )
            case "delete":
                await cluster.delete(topic)
            case "grow":
                await cluster.grow(topic, rng.randint(2, 6))
            case "send":
                records: list[tuple[bytes | None, bytes | None]] = [(None, b"value")]
                await cluster.try_once(
                    client.send(topic, partition, records, acks=-1, timeout_s=1.0)
                )
            case "move":
                target = tuple(rng.sample([1, 2, 3], rng.randint(1, 3)))
                await cluster.try_once(client.reassign(topic, partition, target, timeout_s=2.0))
            case "cancel":
                await cluster.try_once(client.reassign(topic, partition, None, timeout_s=2.0))
        await asyncio.sleep(rng.random() * 0.3)


class Faults:
    """What is broken now; at most one broker is dead at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._runtime = cluster.runtime
        self._dead: list[str] = []
        self._paused: list[str] = []
        self._cut: list[frozenset[Link]] = []

    async def strike(self, rng: Random) -> None:
        broker, other = rng.sample(self._runtime.cluster.brokers, 2)
        match rng.choice(["kill", "pause", "expire", "cut", "heal"]):
            case "kill" if not self._dead and broker not in self._paused:
                self._dead.append(broker)
                await self._runtime.processes.kill(broker)
            case "pause" if broker not in (*self._dead, *self._paused):
                self._paused.append(broker)
                await self._runtime.processes.pause(broker)
            case "expire":
                number = broker.removeprefix("broker-")
                znode = await self._cluster.zookeeper.get(f"/brokers/ids/{number}")
                if znode is not None:
                    await self._cluster.zookeeper.end_session(znode[1].ephemeral_owner)
            case "cut":
                both = {Link(broker, other), Link(other, broker)}
                links = frozenset(both if rng.random() < 0.5 else {Link(broker, other)})
                self._cut.append(links)
                await self._runtime.network.cut(links)
            case "heal":
                await self.heal()

    async def heal(self) -> None:
        while self._cut:
            await self._runtime.network.restore(self._cut.pop())
        while self._paused:
            await self._runtime.processes.resume(self._paused.pop())
        while self._dead:
            await self._runtime.processes.restart(self._dead.pop())


@pytest.mark.parametrize("seed", range(20))
def test_what_was_asked_for_comes_to_its_end(seed: int) -> None:
    async def test(cluster: Cluster) -> None:
        rng = Random(seed)
        faults = Faults(cluster)

        async def strike_on() -> None:
            for _ in range(FAULTS):
                await asyncio.sleep(rng.random() * 1.5)
                await faults.strike(rng)

        await asyncio.gather(administer(cluster, rng), strike_on())
        await faults.heal()
        await cluster.until(cluster.is_settled)
        for topic in await cluster.zookeeper.children("/brokers/topics"):
            await cluster.send(topic, 0, b"last")
        await asyncio.sleep(5.0)
        assert await cluster.is_settled()

    simulate(test, seed=seed)
