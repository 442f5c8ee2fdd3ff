"""``stall-follower``: one follower's Fetch requests are held, everything else of it works.

Its session lives, it serves clients and answers the controller; only its log stands still. The
leaders must take it out of the ISR once ``replica.lag.time.max.ms`` is over, and must not before.

Effect: its Fetch requests are seen held at the links, and none gets through; when it left an ISR,
the history says which. Undone: its Fetch requests get through again.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar, Self

from nemesis.faults import targets
from nemesis.faults.base import DrawRange, Fault, Measured, Place
from nemesis.runtimes.base import FETCH_API_KEY, Capability, Link

HELD_TIMEOUT_S = 4.0
POLL_INTERVAL_S = 0.1


class StallFollower(Fault, frozen=True, kw_only=True):
    """Hold the target's Fetch requests to every other broker for ``duration_s``."""

    name: ClassVar[str] = "stall-follower"
    summary: ClassVar[str] = "a follower stops fetching while everything else of it works"
    capability: ClassVar[Capability] = Capability.STALL

    target: str = "follower"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        targets.check(self.target, nodes)

    async def aim(self, place: Place, rng: Random) -> StallFollowerStrike:
        return StallFollowerStrike(place, (await targets.resolve(self.target, place, rng))[0])


class StallFollowerStrike:
    """One stall that has found its follower."""

    def __init__(self, place: Place, follower: str) -> None:
        self._place = place
        self._links = frozenset(
            Link(follower, leader, api_key=FETCH_API_KEY)
            for leader in place.runtime.brokers
            if leader != follower
        )
        self._is_held = False
        self._outside: list[str] = []
        self._forwarded_at_undo = 0
        self.targets = [follower]
        self.intent: dict[str, Any] = {"held": "Fetch", "follower": follower}

    async def apply(self) -> Measured:
        _, held_before = await self._bytes()
        self._is_held = True  # also if what holds them fails in the middle
        await self._place.links.hold(self._links)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + HELD_TIMEOUT_S
        held = held_before
        while held <= held_before and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
            _, held = await self._bytes()
        return Measured(
            is_effective=held > held_before, detail={"held_fetch_bytes": held - held_before}
        )

    async def undo(self) -> None:
        if not self._is_held:
            return
        self._is_held = False
        self._outside = await self._isr_without_it()
        self._forwarded_at_undo, _ = await self._bytes()
        await self._place.links.release(self._links)

    async def verify(self) -> Measured:
        forwarded, _ = await self._bytes()
        return Measured(
            is_effective=forwarded > self._forwarded_at_undo,
            detail={
                "fetch_bytes_since": forwarded - self._forwarded_at_undo,
                "was_outside_isr_of": self._outside,
            },
        )

    async def _bytes(self) -> tuple[int, int]:
        counters = (await self._place.runtime.counters(self._links)).values()
        return sum(c.forwarded_bytes for c in counters), sum(c.held_bytes for c in counters)

    async def _isr_without_it(self) -> list[str]:
        follower = targets.id_of(self.targets[0])
        snapshot = await self._place.view.snapshot()
        return [
            f"{topic}-{partition}"
            for (topic, partition), state in sorted(snapshot.partitions.items())
            if follower in state.replicas and follower not in state.isr
        ]
