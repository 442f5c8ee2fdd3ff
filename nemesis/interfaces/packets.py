"""The part ``packets``: the packets of links are lost, duplicated, reordered, and delayed by unequal times."""

from __future__ import annotations

from typing import Protocol

from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.links import Link


class Packets(Protocol):
    """Single packets. All coroutines raise ``RuntimeFailure``."""

    async def impair(self, links: frozenset[Link], impairment: Impairment) -> None:
        """Treat the packets on these directions so from now on, instead of the treatment before.

        ``Impairment()`` ends it. Delays add to those of ``Delays.delay``.
        """

    async def counters(self, links: frozenset[Link]) -> dict[Link, PacketCounters]:
        """Return what happened to the packets of each link since the start."""
