"""``slow-link`` and ``reset-connections``: the network works, and works badly.

``slow-link``: everything between the victim and some peers takes ``delay_ms`` longer each way, in both directions.
Nothing is lost and the order stays; what suffers is every bound that takes a round trip for nothing. Effect: a probe
takes at least the two delays. Undone: it does not.

``reset-connections``: the connections between the victim and some peers end at once, whatever is under way on them;
new ones can be made. What was sent may have arrived or not, and nobody is told which. Effect: connections were there
and were reset. Undone (nothing to do): a probe crosses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from msgspec import Meta

from nemesis.faults import grudge, selectors
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    SelectorUnresolved,
    selector_field,
)
from nemesis.faults.link_rules import Delay
from nemesis.faults.partition import CROSSES_TIMEOUT_S, PROBED_PAIRS, open_pairs, probes_cross
from nemesis.interfaces.cluster import controllers_of
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import Connections, Delays
from nemesis.interfaces.unsupported import supported

PeerGroup = Literal["brokers", "clients", "zookeeper", "all"]
Peers = Annotated[PeerGroup, Meta(description="nodes at the other end of the links")]
LEAST_DELAY_MS = 50
"""Less could not be told from a network that is slow by itself."""
MOST_DELAY_MS = 2_000
TRIPS = 4
"""Of a probe: the connection there and back, the request, the reply."""
DELAYED_TRIPS = 2
"""Of these at least, on any runtime: the request and the reply."""
RESET_TIMEOUT_S = 4.0
RESET_INTERVAL_S = 0.1


class SlowLink(Fault, frozen=True, kw_only=True):
    """Delay what goes between the victim and ``peers`` for ``duration_s``."""

    name: ClassVar[str] = "slow-link"
    summary: ClassVar[str] = (
        "delays all data between a broker and `peers` by `delay_ms`, in both directions; nothing is lost"
    )
    effect: ClassVar[str] = "probes take at least two delays"
    heal: ClassVar[str] = "probes take less than two delays"
    needs: ClassVar[frozenset[type]] = frozenset({Delays})

    selector: Selector = selector_field("one")
    peers: Peers = "brokers"
    delay_ms: Annotated[
        int,
        Meta(
            ge=LEAST_DELAY_MS,
            le=MOST_DELAY_MS,
            description="milliseconds of delay in each direction",
        ),
    ] = 200

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(
            selector=rng.choice(["controller", "leader", "follower", "one"]),
            peers=rng.choice(get_args(PeerGroup)),
            delay_ms=round(10 ** rng.uniform(1.7, 2.8)),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> SlowLinkStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        strike = SlowLinkStrike(
            context, victim, links_of(victim, self.peers, context), self.delay_ms
        )
        if not open_pairs(strike.links, context):
            raise SelectorUnresolved(f"no probe can cross between {victim} and its peers")
        return strike


class ResetConnections(Fault, frozen=True, kw_only=True):
    """Reset the connections between the victim and ``peers``, once."""

    name: ClassVar[str] = "reset-connections"
    summary: ClassVar[str] = (
        "resets the connections between a broker and `peers`, once; data in flight is lost"
    )
    effect: ClassVar[str] = "connections existed"
    heal: ClassVar[str] = "probes cross (nothing to undo)"
    needs: ClassVar[frozenset[type]] = frozenset({Connections})
    shares_victim: ClassVar[bool] = True

    selector: Selector = selector_field("one")
    peers: Peers = "all"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del durations
        return cls(
            selector=rng.choice(["controller", "controller", "leader", "one"]),
            peers=rng.choice(get_args(PeerGroup)),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> ResetStrike:
        victim = (await selectors.resolve(self.selector, context, rng, shares_victim=True))[0]
        links = links_of(victim, self.peers, context)
        if not open_pairs(links, context):
            raise SelectorUnresolved(f"no probe can cross between {victim} and its peers")
        if not await supported(context.network.connections).ends(links):
            raise SelectorUnresolved(f"nobody of its peers is connected with {victim}")
        return ResetStrike(context, victim, links)


def links_of(victim: str, peers: PeerGroup, context: FaultContext) -> frozenset[Link]:
    """Return both directions between a broker and its peers."""
    cluster = context.cluster
    others = {
        "brokers": [node for node in cluster.brokers if node != victim],
        "clients": cluster.clients,
        "zookeeper": [
            node for node in (*cluster.zookeepers, *controllers_of(cluster)) if node != victim
        ],
    }
    chosen = [node for nodes in others.values() for node in nodes]
    return grudge.links(grudge.between([victim], others.get(peers, chosen)))


class SlowLinkStrike:
    """One slowness that has found its victim."""

    def __init__(
        self, context: FaultContext, victim: str, links: frozenset[Link], delay_ms: int
    ) -> None:
        self._context = context
        self._delay_ms = delay_ms
        self._delay = context.links.guard(Delay(links, delay_ms))
        self.links = links
        self.victims = [victim]
        self.intent: dict[str, Any] = {"delay_ms": delay_ms, "links": len(links)}

    async def apply(self) -> Measured:
        await self._delay.put()
        times_ms = await self._round_trips_ms()
        return Measured(
            is_effective=bool(times_ms) and min(times_ms.values()) >= self._least_ms,
            detail={"round_trips_ms": times_ms},
        )

    async def undo(self) -> None:
        await self._delay.remove()

    async def verify(self) -> Measured:
        times_ms = await self._round_trips_ms()
        return Measured(
            is_effective=bool(times_ms) and max(times_ms.values()) < self._least_ms,
            detail={"round_trips_ms": times_ms},
        )

    @property
    def _least_ms(self) -> int:
        return DELAYED_TRIPS * self._delay_ms

    async def _round_trips_ms(self) -> Mapping[str, float]:
        """How long each probe took that crossed; the others are left out."""
        loop = asyncio.get_running_loop()
        timeout_s = CROSSES_TIMEOUT_S + TRIPS * self._delay_ms / 1000

        async def probe(pair: tuple[str, str]) -> tuple[str, float | None]:
            begin = loop.time()
            has_crossed = await self._context.network.probe(*pair, timeout_s=timeout_s)
            took_ms = round((loop.time() - begin) * 1000, 3)
            return " to ".join(pair), took_ms if has_crossed else None

        pairs = open_pairs(self.links, self._context)[:PROBED_PAIRS]
        answers = await asyncio.gather(*map(probe, pairs))
        return {pair: took_ms for pair, took_ms in answers if took_ms is not None}


class ResetStrike:
    """One reset that has found its victim."""

    def __init__(self, context: FaultContext, victim: str, links: frozenset[Link]) -> None:
        self._context = context
        self._links = links
        self.victims = [victim]
        self.intent: dict[str, Any] = {"links": len(links)}

    async def apply(self) -> Measured:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RESET_TIMEOUT_S
        ends = await supported(self._context.network.connections).reset(self._links)
        while not ends and loop.time() < deadline:
            await asyncio.sleep(RESET_INTERVAL_S)
            ends = await supported(self._context.network.connections).reset(self._links)
        return Measured(is_effective=ends > 0, detail={"connection_ends": ends})

    async def undo(self) -> None:
        """What was reset stays so."""

    async def verify(self) -> Measured:
        return await probes_cross(open_pairs(self._links, self._context), self._context)
