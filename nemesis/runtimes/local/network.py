"""The part ``network`` of the local runtime: links through the proxy."""

from __future__ import annotations

from typing import Final

from nemesis.interfaces.links import Link, LinkCounters
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.local.nodes import LocalNodes

NO_DELAYS: Final = Unsupported("its proxy holds bytes or lets them through at once")
NO_RESETS: Final = Unsupported("its proxy keeps connections open")
NO_BANDWIDTH: Final = Unsupported("its links carry bytes at any speed")


class LocalNetwork:
    """Implements ``nemesis.interfaces.network.Network``, ``RequestLinks`` and ``StrayLinks``."""

    delays: Final = NO_DELAYS
    connections: Final = NO_RESETS
    bandwidth: Final = NO_BANDWIDTH

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    @property
    def requests(self) -> LocalNetwork:
        return self

    @property
    def strays(self) -> LocalNetwork:
        return self

    async def copy(self, links: frozenset[Link], *, after_ms: int) -> None:
        await self._nodes.links.copy(links, after_ms=after_ms)

    async def strand(self, links: frozenset[Link]) -> None:
        await self._nodes.links.strand(links)

    async def rejoin(self, links: frozenset[Link], *, is_abandoned_lost: bool) -> None:
        await self._nodes.links.rejoin(links, is_abandoned_lost=is_abandoned_lost)

    async def astray(self, links: frozenset[Link]) -> int:
        return await self._nodes.links.astray(links)

    async def cut(self, links: frozenset[Link]) -> None:
        await self._nodes.links.hold(links)

    async def restore(self, links: frozenset[Link]) -> None:
        await self._nodes.links.release(links)

    async def hold(self, links: frozenset[Link]) -> None:
        await self._nodes.links.hold(links)

    async def release(self, links: frozenset[Link]) -> None:
        await self._nodes.links.release(links)

    async def counters(self, links: frozenset[Link]) -> dict[Link, LinkCounters]:
        return await self._nodes.links.counters(links)

    async def probe(self, source: str, target: str, *, timeout_s: float) -> bool:
        nodes = self._nodes
        return await nodes.ask(
            nodes.known(target),
            nodes.address(target),
            source_host=nodes.addresses.host(source),
            timeout_s=timeout_s,
        )
