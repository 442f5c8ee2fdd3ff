"""A simulated ensemble on a simulated network, and clients on nodes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from nemesis.interfaces.links import Link
from nemesis.reference.ports import SessionState
from nemesis.simulation.loop import Schedule, SimulationLoop
from nemesis.simulation.network import Network
from nemesis.simulation.node import Node
from nemesis.simulation.zookeeper.admin import SimulatedZooKeeperAdmin
from nemesis.simulation.zookeeper.client import SimulatedZooKeeperClient
from nemesis.simulation.zookeeper.ensemble import SimulatedEnsemble


class World:
    """Members are ``zookeeper-1`` and so on; ``client("a")`` lives in the harness but calls from node ``a``."""

    def __init__(
        self, loop: SimulationLoop, *, members: int = 3, seed: int = 0, tick_time_ms: int = 500
    ) -> None:
        self.loop = loop
        self.rng = Random(seed)
        self.network = Network(loop, Random(seed + 1))
        addresses = {}
        self.nodes: dict[str, Node] = {}
        for number in range(1, members + 1):
            name, host = f"zookeeper-{number}", f"10.0.2.{number}"
            self.network.register(host, name)
            self.nodes[name] = Node(loop, name, host)
            addresses[name] = f"{host}:2181"
        self.ensemble = SimulatedEnsemble(addresses, rng=self.rng, tick_time_ms=tick_time_ms)
        self.hosts: dict[str, str] = {}
        for name in self.nodes:
            self.start(name)

    def start(self, name: str) -> None:
        self.nodes[name].start(lambda: self.ensemble.main(name))

    def client(
        self, name: str, *, timeout_ms: int = 4_000, only: str | None = None
    ) -> RecordingClient:
        """A client of node ``name``, of all members or of one."""
        if name not in self.hosts:
            self.hosts[name] = f"10.0.1.{len(self.hosts) + 1}"
            self.network.register(self.hosts[name], name)
        hosts = f"{self.nodes[only].host}:2181" if only else self.ensemble.connect_string
        return RecordingClient(hosts, timeout_ms, self.hosts[name], Random(self.rng.random()))

    def admin(self) -> SimulatedZooKeeperAdmin:
        return SimulatedZooKeeperAdmin(self.ensemble)

    async def leader(self) -> str:
        """The one leader, once there is exactly one that is alive."""
        while True:
            leaders = [name for name in self.ensemble.leaders() if self.nodes[name].is_alive]
            if len(leaders) == 1:
                return leaders[0]
            await asyncio.sleep(0.05)

    async def followers(self) -> list[str]:
        leader = await self.leader()
        return [name for name in self.nodes if name != leader]

    def isolate(self, name: str, *others: str) -> frozenset[Link]:
        """Cut a node from others (all members when none are named), both ways; return the links."""
        peers = others or tuple(other for other in self.nodes if other != name)
        links = frozenset(link for peer in peers for link in (Link(name, peer), Link(peer, name)))
        self.network.hold(links)
        return links


class RecordingClient(SimulatedZooKeeperClient):
    """Keeps the states that it went through, and when."""

    def __init__(self, hosts: str, timeout_ms: int, source_host: str, rng: Random) -> None:
        super().__init__(hosts, timeout_ms, source_host, rng)
        self.states: list[SessionState] = []
        self.add_session_listener(self.states.append)

    async def until(self, state: SessionState) -> None:
        """Wait until the present state is this one."""
        while not self.states or self.states[-1] is not state:
            await asyncio.sleep(0.01)


def run(
    test: Callable[[World], Coroutine[Any, Any, None]],
    *,
    members: int = 3,
    seed: int = 0,
    deviation_rate: float = 0.0,
    limit_s: float = 300.0,
) -> World:
    """Run a test in a world of its own; returns the world as it was at the end."""
    loop = SimulationLoop(Schedule(seed, deviation_rate))
    try:
        world = World(loop, members=members, seed=seed)
        loop.run_until_complete(asyncio.wait_for(test(world), limit_s))
        return world
    finally:
        loop.close()
