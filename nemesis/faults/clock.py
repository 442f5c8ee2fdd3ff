"""``clock-skew``, ``clock-skew-zookeeper``: the victim's wall clock is stepped and drifts, until the time is over.

Time-outs run on the monotonic clock, which is left alone; what depends on the wall clock are timestamps, and nothing
that Kafka promises may depend on those. Effect: the clock read back says what was asked for. Undone: it is right.

Only the simulation reads a drift back exactly; elsewhere it is measured.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from nemesis.faults import members, selectors
from nemesis.faults.base import DrawRange, Fault, FaultContext, Measured, Selector, selector_field
from nemesis.interfaces.clocks import Clocks
from nemesis.interfaces.ensemble import EnsembleMembers
from nemesis.support.errors import UsageError

MAX_OFFSET_MS = 86_400_000
TOLERANCE_MS = 50
"""A drift goes on between setting a clock and reading it."""
DRIFT_TOLERANCE = 0.001
"""Two readings a tenth of a second apart, on a busy machine."""


class ClockSkew(Fault, frozen=True, kw_only=True):
    """Set the victims' wall clocks off for ``duration_s``; at least one of offset and drift is not zero."""

    name: ClassVar[str] = "clock-skew"
    summary: ClassVar[str] = (
        "steps a broker's wall clock by `offset_ms` and lets it gain `drift` seconds in each second; timers "
        "do not change"
    )
    effect: ClassVar[str] = "the clock read back is off by that much"
    heal: ClassVar[str] = "the clock is right again"
    needs: ClassVar[frozenset[type]] = frozenset({Clocks})

    selector: Selector = selector_field("one")
    offset_ms: Annotated[
        int,
        Meta(
            ge=-MAX_OFFSET_MS,
            le=MAX_OFFSET_MS,
            description="milliseconds by which the clock is stepped",
        ),
    ] = 0
    drift: Annotated[
        float,
        Meta(
            ge=-0.9,
            le=9.0,
            description="seconds gained in each second; not 0 together with `offset_ms`",
        ),
    ] = 0.0
    """Seconds gained in each second; negative when the clock is slow."""

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(
            selector=rng.choice(["one", "controller", "leader", "all"]),
            offset_ms=rng.choice([-1, 1]) * round(10 ** rng.uniform(2, 7)),
            drift=rng.choice([0.0, 0.0, 0.01, -0.01, 0.5, -0.5]),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)
        self._check_change()

    async def aim(self, context: FaultContext, rng: Random) -> ClockStrike:
        return ClockStrike(context, await selectors.resolve(self.selector, context, rng), self)

    def _check_change(self) -> None:
        if self.offset_ms == 0 and self.drift == 0:
            raise UsageError(
                f"{self.name} with offset_ms 0 and drift 0 changes nothing: give one of them"
            )


class ClockSkewZookeeper(ClockSkew, frozen=True, kw_only=True):
    """Set the wall clocks of members of the ensemble off, which stamp what they write: nothing may depend on that."""

    name: ClassVar[str] = "clock-skew-zookeeper"
    summary: ClassVar[str] = (
        "moves the wall clock of members of the ZooKeeper ensemble, as `clock-skew` does for brokers"
    )
    needs: ClassVar[frozenset[type]] = frozenset({Clocks, EnsembleMembers})

    selector: Selector = selector_field("leader")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        selector = rng.choice(["leader", "leader", "follower", "minority"])
        return msgspec.structs.replace(super().draw(rng, durations), selector=selector)

    def check(self, nodes: frozenset[str]) -> None:
        members.check(self.selector, nodes, duration_s=self.duration_s)
        self._check_change()

    async def aim(self, context: FaultContext, rng: Random) -> ClockStrike:
        return ClockStrike(
            context, sorted(await members.resolve(self.selector, context, rng)), self
        )


class ClockStrike:
    """One skew that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str], fault: ClockSkew) -> None:
        self._context = context
        self._fault = fault
        self._skewed: list[str] = []
        self._reset: dict[str, dict[str, Any]] = {}
        self.victims = victims
        self.intent: dict[str, Any] = {"offset_ms": fault.offset_ms, "drift": fault.drift}

    async def apply(self) -> Measured:
        measured: dict[str, Any] = {}
        for node in self.victims:
            self._skewed.append(node)
            measured[node] = await self._context.clocks.skew(
                node, offset_ms=self._fault.offset_ms, drift=self._fault.drift
            )
        is_effective = all(
            _shows(clock, self._fault.offset_ms, self._fault.drift) for clock in measured.values()
        )
        return Measured(is_effective=is_effective, detail=measured)

    async def undo(self) -> None:
        while self._skewed:
            node = self._skewed.pop()
            self._reset[node] = await self._context.clocks.correct(node)

    async def verify(self) -> Measured:
        right = [node for node in self.victims if _shows(self._reset.get(node, {}), 0, 0.0)]
        return Measured(is_effective=right == self.victims, detail=dict(self._reset))


def _shows(clock: dict[str, Any], offset_ms: int, drift: float) -> bool:
    """Whether a clock read back is as far off as asked for; one that nobody read is not."""
    if "offset_ms" not in clock:
        return False
    return _is_near(clock["offset_ms"], offset_ms, TOLERANCE_MS) and _is_near(
        clock["drift"], drift, DRIFT_TOLERANCE
    )


def _is_near(measured: float, wanted: float, tolerance: float) -> bool:
    """However small what is wanted, nothing at all is not near, nor is the other direction."""
    if wanted and measured * wanted <= 0:
        return False
    return abs(measured - wanted) <= tolerance
