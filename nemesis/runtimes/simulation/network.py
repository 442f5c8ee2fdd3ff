"""The part ``network`` of the simulation: links of the simulated network."""

from __future__ import annotations

from typing import Final

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.simulation.addresses import host_of
from nemesis.runtimes.simulation.machines import Machines

NO_BANDWIDTH: Final = Unsupported("its links carry bytes at any speed")


class SimulationNetwork:
    """Implements ``nemesis.interfaces.network.Network`` and its parts ``requests``, ``strays`` and ``delays``."""

    bandwidth: Final = NO_BANDWIDTH

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.connections = SimulationConnections(machines)

    @property
    def requests(self) -> SimulationNetwork:
        return self

    @property
    def strays(self) -> SimulationNetwork:
        return self

    @property
    def delays(self) -> SimulationNetwork:
        return self

    async def cut(self, links: frozenset[Link]) -> None:
        self.machines.network.hold(links)

    async def restore(self, links: frozenset[Link]) -> None:
        self.machines.network.release(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        return self.machines.network.counters(links)

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        return await self.machines.ask(target, host_of(source), timeout_s)

    async def hold(self, links: frozenset[Link]) -> None:
        self.machines.network.hold(links)

    async def release(self, links: frozenset[Link]) -> None:
        self.machines.network.release(links)

    async def copy(self, links: frozenset[Link], *, after_ms: int) -> None:
        self.machines.network.copy(links, after_ms / 1000)

    async def strand(self, links: frozenset[Link]) -> None:
        self.machines.network.strand(links)

    async def rejoin(self, links: frozenset[Link], *, is_abandoned_lost: bool) -> None:
        self.machines.network.rejoin(links, is_abandoned_lost=is_abandoned_lost)

    async def astray(self, links: frozenset[Link]) -> int:
        return self.machines.network.astray(links)

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        self.machines.network.delay(links, delay_ms / 1000)


class SimulationConnections:
    """Implements ``nemesis.interfaces.network.Connections``."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines

    async def ends(self, links: frozenset[Link]) -> int:
        return len(self.machines.network.ends_between(links))

    async def reset(self, links: frozenset[Link]) -> int:
        return self.machines.network.reset(links)
