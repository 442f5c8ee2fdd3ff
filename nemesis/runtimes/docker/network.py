"""The parts ``network`` and ``packets`` of the docker runtime: rules of iptables and the packet handler.

Packet faults are injected in ``packets``; this module hands the calls on to the rules of the run.
"""

from __future__ import annotations

import socket
from typing import Final

from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.links import Link, LinkCounters
from nemesis.interfaces.network import BandwidthLimits, Connections, Delays, RequestLinks
from nemesis.interfaces.runtime import Missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.docker.nodes import DockerNodes
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError

NO_STRAYS: Final = Unsupported("its packets cannot change their connection")


class DockerNetwork:
    """Implements ``nemesis.interfaces.network.Network``. What is cut is dropped, and TCP sends it again."""

    def __init__(self, nodes: DockerNodes, missing: Missing) -> None:
        """``missing`` has the parts that this kernel cannot provide."""
        self._nodes = nodes
        links = DockerLinks(nodes)
        self.requests: RequestLinks | Unsupported = missing.get(RequestLinks) or links
        self.delays: Delays | Unsupported = missing.get(Delays) or links
        self.connections: Connections | Unsupported = missing.get(Connections) or DockerConnections(
            nodes
        )
        self.bandwidth: BandwidthLimits | Unsupported = missing.get(
            BandwidthLimits
        ) or DockerBandwidth(nodes)

    async def cut(self, links: frozenset[Link]) -> None:
        await self._nodes.packet_rules.cut(links)

    async def restore(self, links: frozenset[Link]) -> None:
        await self._nodes.packet_rules.restore(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        return await self._nodes.packet_rules.counters(links)

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        nodes, address = self._nodes, self._nodes.address(target)
        if source in nodes.clients:
            host = nodes.client_host(source)
            return await nodes.ask(target, address, source_host=host, timeout_s=timeout_s)
        node = nodes.node(source)
        try:
            namespace = Namespace(node.pid)
        except NamespaceError:  # it is dead: nothing can be sent from there
            return False
        try:
            caller = namespace.socket(socket.AF_INET, socket.SOCK_STREAM)
        finally:
            namespace.close()
        return await nodes.ask(target, address, caller=caller, timeout_s=timeout_s)


class DockerLinks:
    """Implements ``nemesis.interfaces.network.RequestLinks`` and ``Delays``."""

    strays: Final = NO_STRAYS

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    async def hold(self, links: frozenset[Link]) -> None:
        await self._nodes.packet_rules.cut(links)

    async def release(self, links: frozenset[Link]) -> None:
        await self._nodes.packet_rules.restore(links)

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        await self._nodes.packet_rules.delay(links, delay_ms=delay_ms)


class DockerConnections:
    """Implements ``nemesis.interfaces.network.Connections``."""

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    async def ends(self, links: frozenset[Link]) -> int:
        return await self._nodes.packet_rules.connection_ends(links)

    async def reset(self, links: frozenset[Link]) -> int:
        return await self._nodes.packet_rules.reset(links)


class DockerBandwidth:
    """Implements ``nemesis.interfaces.network.BandwidthLimits``."""

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    async def limit(self, node: str, *, rate_kbit_s: int) -> None:
        await self._nodes.packet_rules.throttle(node, rate_kbit_s=rate_kbit_s)

    async def measure(self, node: str, *, expected_kbit_s: int) -> int:
        return await self._nodes.packet_rules.rate_kbit_s(node, expected_kbit_s=expected_kbit_s)


class DockerPackets:
    """Implements ``nemesis.interfaces.packets.Packets``."""

    def __init__(self, nodes: DockerNodes) -> None:
        self._nodes = nodes

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        await self._nodes.packet_rules.impair(links, impairment)

    async def counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        return await self._nodes.packet_rules.packet_counters(links)
