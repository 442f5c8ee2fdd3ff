"""Faults of single packets between the victim and some peers, in both directions.

* ``packet-loss``         some are lost; TCP sends them again, later and later
* ``packet-delay``        all are late, by unequal times: ``delay_ms`` give or take up to ``jitter_ms``; the order stays
* ``packet-duplication``  some arrive twice
* ``packet-reordering``   some are kept back for ``hold_ms`` and overtaken

Streams of bytes stay whole: what suffers is every bound that counts on the time of a round trip.

Effect: the runtime has counted packets to which it happened; probes are sent back to back meanwhile, so that there are
packets. Undone: probes cross, and it happens to none of their packets.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from dataclasses import asdict
from math import log10
from random import Random
from typing import Annotated, Any, ClassVar, Self, get_args

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    SelectorUnresolved,
    selector_field,
)
from nemesis.faults.connections import PeerGroup, Peers, links_of
from nemesis.faults.link_rules import Impair
from nemesis.faults.partition import CROSSES_TIMEOUT_S, PROBED_PAIRS, open_pairs
from nemesis.interfaces.impairment import Impairment, PacketCounters
from nemesis.interfaces.links import Link
from nemesis.interfaces.packets import Packets
from nemesis.support.errors import UsageError

EFFECT_TIMEOUT_S = 4.0
TRIPS = 4
"""Of a probe: the connection there and back, the request, the reply."""
MIN_INTERVAL_S = 0.02
"""Between two rounds of probes: those that find nobody must not spin."""
SELECTORS = ("controller", "controller", "leader", "follower", "one")

Ratio = Annotated[float, Meta(ge=0.01, le=0.9)]
Milliseconds = Annotated[int, Meta(ge=0, le=2_000)]
PositiveMilliseconds = Annotated[int, Meta(ge=1, le=2_000)]


class PacketFault(Fault, frozen=True, kw_only=True):
    """The base of these faults. ``counted`` is what ``PacketCounters`` calls a packet to which it happened."""

    needs: ClassVar[frozenset[type]] = frozenset({Packets})
    counted: ClassVar[str]

    selector: Selector = selector_field("one")
    peers: Peers = "brokers"

    @property
    @abstractmethod
    def impairment(self) -> Impairment:
        """What happens to the packets."""

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> PacketStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        links = links_of(victim, self.peers, context)
        if not open_pairs(links, context):
            raise SelectorUnresolved(f"no probe can cross between {victim} and its peers")
        return PacketStrike(context, victim, links, self.impairment, self.counted)


class PacketLoss(PacketFault, frozen=True, kw_only=True):
    """Lose this part of the packets for ``duration_s``."""

    name: ClassVar[str] = "packet-loss"
    summary: ClassVar[str] = (
        "a part of the packets between a broker and `peers` is lost, in both directions"
    )
    effect: ClassVar[str] = "lost packets are counted"
    heal: ClassVar[str] = "probes cross, and none of their packets is lost"
    counted: ClassVar[str] = "lost"

    loss: Annotated[Ratio, Meta(description="part of 1 that is lost")] = 0.1

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(**_whom(rng, durations), loss=_ratio(rng, 0.02, 0.4))

    @property
    def impairment(self) -> Impairment:
        return Impairment(loss=self.loss)


class PacketDelay(PacketFault, frozen=True, kw_only=True):
    """Delay every packet by ``delay_ms`` give or take up to ``jitter_ms`` for ``duration_s``."""

    name: ClassVar[str] = "packet-delay"
    summary: ClassVar[str] = (
        "packets between a broker and `peers` are late by `delay_ms`, plus or minus up to `jitter_ms`; the order stays"
    )
    effect: ClassVar[str] = "delayed packets are counted"
    heal: ClassVar[str] = "probes cross, and none of their packets is delayed"
    counted: ClassVar[str] = "delayed"

    delay_ms: Annotated[
        PositiveMilliseconds, Meta(description="milliseconds of delay in each direction")
    ] = 100
    jitter_ms: Annotated[
        Milliseconds, Meta(description="milliseconds by which a delay varies; at most `delay_ms`")
    ] = 50

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        delay_ms = round(10 ** rng.uniform(1.3, 2.5))
        jitter_ms = rng.randint(delay_ms // 4, delay_ms)
        return cls(**_whom(rng, durations), delay_ms=delay_ms, jitter_ms=jitter_ms)

    @property
    def impairment(self) -> Impairment:
        return Impairment(delay_ms=self.delay_ms, jitter_ms=self.jitter_ms)

    def check(self, nodes: frozenset[str]) -> None:
        super().check(nodes)
        if self.jitter_ms > self.delay_ms:
            raise UsageError(
                f"packet-delay has jitter_ms {self.jitter_ms}: allowed is at most its delay_ms, {self.delay_ms}"
            )


class PacketDuplication(PacketFault, frozen=True, kw_only=True):
    """Let this part of the packets arrive twice for ``duration_s``."""

    name: ClassVar[str] = "packet-duplication"
    summary: ClassVar[str] = "a part of the packets between a broker and `peers` arrives twice"
    effect: ClassVar[str] = "duplicated packets are counted"
    heal: ClassVar[str] = "probes cross, and none of their packets is duplicated"
    counted: ClassVar[str] = "duplicated"

    duplication: Annotated[Ratio, Meta(description="part of 1 that arrives twice")] = 0.2

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(**_whom(rng, durations), duplication=_ratio(rng, 0.05, 0.5))

    @property
    def impairment(self) -> Impairment:
        return Impairment(duplication=self.duplication)


class PacketReordering(PacketFault, frozen=True, kw_only=True):
    """Keep this part of the packets back for ``hold_ms``, so that others overtake them, for ``duration_s``."""

    name: ClassVar[str] = "packet-reordering"
    summary: ClassVar[str] = (
        "a part of the packets between a broker and `peers` is kept for `hold_ms`, and others overtake them"
    )
    effect: ClassVar[str] = "reordered packets are counted"
    heal: ClassVar[str] = "probes cross, and none of their packets is reordered"
    counted: ClassVar[str] = "reordered"

    reordering: Annotated[Ratio, Meta(description="part of 1 that is overtaken")] = 0.2
    hold_ms: Annotated[
        PositiveMilliseconds, Meta(description="milliseconds that a packet is kept")
    ] = 20

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        whom, reordering = _whom(rng, durations), _ratio(rng, 0.05, 0.5)
        return cls(**whom, reordering=reordering, hold_ms=rng.randint(5, 60))

    @property
    def impairment(self) -> Impairment:
        return Impairment(reordering=self.reordering, hold_ms=self.hold_ms)


class PacketStrike:
    """One of these faults that has found its victim."""

    def __init__(
        self,
        context: FaultContext,
        victim: str,
        links: frozenset[Link],
        impairment: Impairment,
        counted: str,
    ) -> None:
        self._context = context
        self._impairment = impairment
        self._counted = counted
        self._guard = context.links.guard(Impair(links, impairment))
        self.links = links
        self.victims = [victim]
        self.intent: dict[str, Any] = {
            "links": len(links),
            **{name: value for name, value in asdict(impairment).items() if value},
        }

    async def apply(self) -> Measured:
        before = await self._counters()
        await self._guard.put()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + EFFECT_TIMEOUT_S
        counters = PacketCounters()
        while not self._hits(counters) and loop.time() < deadline:
            await self._probe()
            await asyncio.sleep(MIN_INTERVAL_S)
            counters = (await self._counters()).since(before)
        return Measured(is_effective=self._hits(counters) > 0, detail=self._detail(counters))

    async def undo(self) -> None:
        await self._guard.remove()

    async def verify(self) -> Measured:
        before = await self._counters()
        crossed = await self._probe()
        observed = (await self._counters()).since(before)
        return Measured(
            is_effective=bool(crossed) and all(crossed.values()) and not self._hits(observed),
            detail={**self._detail(observed), "probes": crossed},
        )

    async def _probe(self) -> dict[str, bool]:
        pairs = open_pairs(self.links, self._context)[:PROBED_PAIRS]
        slow_s = TRIPS * (self._impairment.delay_ms + self._impairment.hold_ms) / 1000
        crossed = await self._context.probe_all(pairs, timeout_s=CROSSES_TIMEOUT_S + slow_s)
        return {f"{a} to {b}": has_crossed for (a, b), has_crossed in crossed.items()}

    async def _counters(self) -> PacketCounters:
        return PacketCounters.of((await self._context.packets.counters(self.links)).values())

    def _hits(self, counters: PacketCounters) -> int:
        hits: int = asdict(counters)[self._counted]
        return hits

    def _detail(self, counters: PacketCounters) -> dict[str, Any]:
        """Return how many packets there were, and to how many it happened."""
        return {
            "packets": counters.forwarded + counters.lost,
            f"{self._counted}_packets": self._hits(counters),
        }


def _whom(rng: Random, durations: DrawRange) -> dict[str, Any]:
    return {
        "selector": rng.choice(SELECTORS),
        "peers": rng.choice(get_args(PeerGroup)),
        "duration_s": durations.draw(rng),
    }


def _ratio(rng: Random, low: float, high: float) -> float:
    """Small ratios are as likely as large ones."""
    return round(10 ** rng.uniform(log10(low), log10(high)), 3)
