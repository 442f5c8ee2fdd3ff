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
    """Implements ``nemesis.interfaces.network.Network`` and ``RequestLinks``."""

    delays: Final = NO_DELAYS
    connections: Final = NO_RESETS
    bandwidth: Final = NO_BANDWIDTH

    def __init__(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    @property
    def requests(self) -> LocalNetwork:
        return self

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
