"""``slow-zookeeper``: what ZooKeeper answers one broker is held for a while, again and again, during churn.

An overloaded ZooKeeper answers late and in order. A broker's requests arrive and take effect, while the replies of its
reads and writes, and its watch events, wait for up to ``hold_ms``. So a controller computes with what was true before
other changes, and does not know which of its own writes succeeded. Its session survives: no hold is longer than half
of the shortest session time-out of our scenarios. So that there is something to read, sessions of other brokers are
ended meanwhile (``churn``).

Effect: bytes from ZooKeeper to the victim are held. Undone: a probe of ZooKeeper from the victim's address crosses.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Annotated, Any, ClassVar, Final, Self

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
from nemesis.faults.churn import end_a_session
from nemesis.faults.link_rules import Cut
from nemesis.faults.partition import open_pairs, probes_cross
from nemesis.interfaces.ensemble import Ensemble
from nemesis.interfaces.links import Link
from nemesis.interfaces.network import Network

MAX_HOLD_MS: Final = 1_000
PASS_MS: Final = 150
"""Between two holds: what was held arrives, and the connection proves that it lives."""
HELD_TIMEOUT_S: Final = 4.0
CHURN_INTERVAL_S: Final = 1.0


class SlowZookeeper(Fault, frozen=True, kw_only=True):
    """Hold ZooKeeper's answers to the victim for ``hold_ms`` at a time, for ``duration_s``."""

    name: ClassVar[str] = "slow-zookeeper"
    summary: ClassVar[str] = (
        "holds what ZooKeeper answers a broker for `hold_ms` at a time and ends sessions of other brokers meanwhile"
    )
    effect: ClassVar[str] = "bytes from ZooKeeper to the broker are held"
    heal: ClassVar[str] = "probes cross"
    needs: ClassVar[frozenset[type]] = frozenset({Network, Ensemble})

    selector: Selector = selector_field("controller")
    hold_ms: Annotated[
        int,
        Meta(ge=50, le=MAX_HOLD_MS, description="milliseconds for which an answer waits at most"),
    ] = 600

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(
            selector=rng.choice(["controller", "controller", "leader"]),
            hold_ms=rng.randint(200, MAX_HOLD_MS),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> SlowZookeeperStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        strike = SlowZookeeperStrike(context, victim, rng, hold_ms=self.hold_ms)
        if not open_pairs(strike.links, context):
            raise SelectorUnresolved(f"no probe can cross between {victim} and ZooKeeper")
        return strike


class SlowZookeeperStrike:
    """A broker that is about to be answered late."""

    def __init__(self, context: FaultContext, victim: str, rng: Random, *, hold_ms: int) -> None:
        self._context = context
        self._rng = rng
        self._hold_s = hold_ms / 1000
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = asyncio.Event()
        self._sessions_ended: list[str] = []
        self.links = frozenset(Link(server, victim) for server in context.cluster.zookeepers)
        self.victims = [victim]
        self.intent: dict[str, Any] = {"held": "answers of ZooKeeper", "hold_ms": hold_ms}

    async def apply(self) -> Measured:
        before = await self._held_bytes()
        self._tasks = [
            asyncio.create_task(self._hold_and_pass(), name="slow-zookeeper"),
            asyncio.create_task(self._churn(), name="slow-zookeeper-churn"),
        ]
        deadline = asyncio.get_running_loop().time() + HELD_TIMEOUT_S
        held = 0
        while held == 0 and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(self._hold_s)
            held = await self._held_bytes() - before
        return Measured(is_effective=held > 0, detail={"held_bytes": held})

    async def undo(self) -> None:
        # Nothing is cancelled: a guard that is interrupted while it changes a link would leave the link as it is.
        self._is_over.set()
        tasks, self._tasks = self._tasks, []
        await asyncio.gather(*tasks)

    async def verify(self) -> Measured:
        crossed = await probes_cross(open_pairs(self.links, self._context), self._context)
        return Measured(
            is_effective=crossed.is_effective,
            detail={**crossed.detail, "sessions_ended": self._sessions_ended},
        )

    async def _hold_and_pass(self) -> None:
        while not self._is_over.is_set():
            async with self._context.links.guard(Cut(self.links)):
                await self._wait(self._hold_s)
            await self._wait(PASS_MS / 1000)

    async def _churn(self) -> None:
        while not self._is_over.is_set():
            snapshot = await self._context.view.snapshot()
            self._sessions_ended += await end_a_session(
                self._context, snapshot, self._rng, spared=self.victims
            )
            await self._wait(self._hold_s + CHURN_INTERVAL_S)

    async def _wait(self, seconds: float) -> None:
        """Return after so long, or when the fault ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_over.wait()

    async def _held_bytes(self) -> int:
        counters = await self._context.network.counters(self.links)
        return sum(counter.held_bytes for counter in counters.values())
