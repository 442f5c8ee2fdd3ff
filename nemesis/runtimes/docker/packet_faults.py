"""The part of ``DockerRuntime`` that acts on packets: the calls of ``Runtime``, handed on to the rules of the run."""

from __future__ import annotations

from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.runtime import Link, LinkCounters, RuntimeFailure
from nemesis.runtimes.docker.packets.packet_rules import PacketRules


class PacketFaults:
    """All coroutines raise ``RuntimeFailure`` when the kernel refuses, or before the cluster's start."""

    def __init__(self) -> None:
        self._rules: PacketRules | None = None

    @property
    def _packets(self) -> PacketRules:
        if self._rules is None:
            raise RuntimeFailure("the cluster has no network before its start")
        return self._rules

    async def cut(self, links: frozenset[Link]) -> None:
        """Drop every packet on these directions until ``restore``; connections stay open and send again."""
        await self._packets.cut(links)

    async def restore(self, links: frozenset[Link]) -> None:
        """Let the packets through again."""
        await self._packets.restore(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        """Return what each link has let through and dropped since the start, in bytes, as the kernel counts."""
        return await self._packets.counters(links)

    async def delay(self, links: frozenset[Link], *, delay_ms: int) -> None:
        """Let what is sent on these directions from now on take so much longer; 0 ends it."""
        await self._packets.delay(links, delay_ms=delay_ms)

    async def connection_ends(self, links: frozenset[Link]) -> int:
        """Return how many ends of connections there are between these nodes."""
        return await self._packets.connection_ends(links)

    async def reset(self, links: frozenset[Link]) -> int:
        """Reset the connections between these nodes; returns how many ends there were."""
        return await self._packets.reset(links)

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        """Treat the packets on these directions so from now on, in place of what was before."""
        await self._packets.impair(links, impairment)

    async def packet_counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        """Return what happened to the packets of each link since the start."""
        return await self._packets.packet_counters(links)

    async def throttle(self, node: str, *, rate_kbit_s: int) -> None:
        """Let no more than this leave the node; 0 ends it."""
        await self._packets.throttle(node, rate_kbit_s=rate_kbit_s)

    async def rate_kbit_s(self, node: str, *, expected_kbit_s: int) -> int:
        """Measure how fast data leaves the node, in kbit/s, by sending some; most exact near what is expected."""
        return await self._packets.rate_kbit_s(node, expected_kbit_s=expected_kbit_s)
