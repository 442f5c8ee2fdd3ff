"""``bandwidth``: what a broker sends goes through a narrow pipe, and waits for it.

Its replies, its fetch requests, its session's pings and the controller's orders share the pipe; what does not fit into
the queue before it is lost. What the broker is sent is not slowed down. Effect: data that is sent from there leaves no
faster than ``rate_kbit_s`` allows. Undone: at least twice as fast.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import DrawRange, Fault, FaultContext, Measured, Selector, selector_field
from nemesis.faults.link_rules import Throttle
from nemesis.interfaces.network import BandwidthLimits
from nemesis.interfaces.unsupported import supported

MEASURED_EXCESS = 1.25
"""What comes through may be so much more: a bucket lets small amounts pass at once."""
FREE_FACTOR = 2


class Bandwidth(Fault, frozen=True, kw_only=True):
    """Let no more than ``rate_kbit_s`` leave the victim for ``duration_s``."""

    name: ClassVar[str] = "bandwidth"
    summary: ClassVar[str] = "limits what a broker sends, to any node, to `rate_kbit_s`"
    effect: ClassVar[str] = "data leaves the broker at that rate, at most a quarter faster"
    heal: ClassVar[str] = "data leaves at least twice as fast"
    needs: ClassVar[frozenset[type]] = frozenset({BandwidthLimits})

    selector: Selector = selector_field("one")
    rate_kbit_s: Annotated[
        int, Meta(ge=500, le=100_000, description="kbit/s that leave the broker")
    ] = 2_000

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(
            selector=rng.choice(["controller", "leader", "leader", "follower", "one"]),
            rate_kbit_s=round(10 ** rng.uniform(2.7, 4)),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> BandwidthStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        return BandwidthStrike(context, victim, self.rate_kbit_s)


class BandwidthStrike:
    """One narrow pipe that has found its broker."""

    def __init__(self, context: FaultContext, victim: str, rate_kbit_s: int) -> None:
        self._context = context
        self._victim = victim
        self._rate_kbit_s = rate_kbit_s
        self._limit = context.links.guard(Throttle(victim, rate_kbit_s))
        self.victims = [victim]
        self.intent: dict[str, Any] = {"rate_kbit_s": rate_kbit_s}

    async def apply(self) -> Measured:
        before = await self._measure()
        await self._limit.put()
        now = await self._measure()
        return Measured(
            is_effective=0 < now <= self._rate_kbit_s * MEASURED_EXCESS,
            detail={"before_kbit_s": before, "measured_kbit_s": now},
        )

    async def undo(self) -> None:
        await self._limit.remove()

    async def verify(self) -> Measured:
        now = await self._measure()
        return Measured(
            is_effective=now >= FREE_FACTOR * self._rate_kbit_s, detail={"measured_kbit_s": now}
        )

    async def _measure(self) -> int:
        """Return 0 when the victim is dead."""
        if not self._context.is_alive(self._victim):
            return 0
        return await supported(self._context.network.bandwidth).measure(
            self._victim, expected_kbit_s=self._rate_kbit_s
        )
