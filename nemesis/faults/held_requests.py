"""Requests of some kinds that are held at the links, while all else between the same nodes gets through.

What is held and what gets through is counted in bytes: that requests were held is the measured effect of a fault, that
they get through again is how its heal is seen.
"""

from __future__ import annotations

import asyncio

from nemesis.faults.base import FaultContext
from nemesis.faults.link_rules import HoldRequests
from nemesis.interfaces.links import Link


class HeldRequests:
    """The requests of these links, held on behalf of one strike."""

    def __init__(self, context: FaultContext, links: frozenset[Link]) -> None:
        self._context = context
        self._links = links
        self._guard = context.links.guard(HoldRequests(links))
        self._held_before = 0
        self._forwarded_at_release = 0
        self.held_bytes = 0
        """Seen held at the last look, by this strike."""

    @property
    def is_held(self) -> bool:
        """Whether the requests are held by this strike."""
        return self._guard.is_put

    async def hold(self) -> None:
        _, self._held_before = await self._bytes()
        await self._guard.put()

    async def wait_for_more(self, *, timeout_s: float, interval_s: float) -> None:
        """Wait until more is held than at the last look, or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        observed = self.held_bytes
        await self._look()
        while self.held_bytes <= observed and loop.time() < deadline:
            await asyncio.sleep(interval_s)
            await self._look()

    async def release(self) -> None:
        """Harmless when nothing is held."""
        if not self.is_held:
            return
        self._forwarded_at_release, _ = await self._bytes()
        await self._guard.remove()

    async def bytes_since(self) -> int:
        """What has got through since the release; none before it."""
        forwarded, _ = await self._bytes()
        return 0 if self.is_held else forwarded - self._forwarded_at_release

    async def _look(self) -> None:
        _, held = await self._bytes()
        self.held_bytes = held - self._held_before

    async def _bytes(self) -> tuple[int, int]:
        counters = (await self._context.network.counters(self._links)).values()
        return sum(c.forwarded_bytes for c in counters), sum(c.held_bytes for c in counters)
