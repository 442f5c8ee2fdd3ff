"""``stall-follower``: one follower's Fetch requests are held, everything else of it works.

Its session lives, it serves clients and answers the controller; only its log stands still. The
leaders must take it out of the ISR once ``replica.lag.time.max.ms`` is over, and must not before.

Effect: its Fetch requests are seen held at the links, and none gets through; when it left an ISR,
the history says which. Undone: its Fetch requests get through again.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Self

from nemesis.faults import selectors
from nemesis.faults.base import DrawRange, Fault, FaultContext, Measured, Selector, selector_field
from nemesis.faults.held_requests import HeldRequests
from nemesis.interfaces.cluster import controllers_of
from nemesis.interfaces.links import FETCH_API_KEY, Link
from nemesis.interfaces.network import RequestLinks
from nemesis.support.node_names import id_of, is_controller

HELD_TIMEOUT_S = 4.0
POLL_INTERVAL_S = 0.1


class StallFollower(Fault, frozen=True, kw_only=True):
    """Hold the victim's Fetch requests to every other broker for ``duration_s``."""

    name: ClassVar[str] = "stall-follower"
    summary: ClassVar[str] = (
        "holds the Fetch requests of one broker to all other brokers; everything else works"
    )
    effect: ClassVar[str] = "bytes of Fetch requests are held within 4 s"
    heal: ClassVar[str] = (
        "Fetch requests pass again; the partitions whose ISR the broker had left are noted"
    )
    needs: ClassVar[frozenset[type]] = frozenset({RequestLinks})

    selector: Selector = selector_field("follower")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> StallFollowerStrike:
        return StallFollowerStrike(
            context, (await selectors.resolve(self.selector, context, rng))[0]
        )


class StallFollowerStrike:
    """One stall that has found its follower."""

    def __init__(self, context: FaultContext, follower: str) -> None:
        self._context = context
        cluster = context.cluster
        leaders = controllers_of(cluster) if is_controller(follower) else cluster.brokers
        links = frozenset(
            Link(follower, leader, api_key=FETCH_API_KEY)
            for leader in leaders
            if leader != follower
        )
        self._requests = HeldRequests(context, links)
        self._outside: list[str] = []
        self.victims = [follower]
        self.intent: dict[str, Any] = {"held": "Fetch", "follower": follower}

    async def apply(self) -> Measured:
        await self._requests.hold()
        await self._requests.wait_for_more(timeout_s=HELD_TIMEOUT_S, interval_s=POLL_INTERVAL_S)
        held = self._requests.held_bytes
        return Measured(is_effective=held > 0, detail={"held_fetch_bytes": held})

    async def undo(self) -> None:
        if self._requests.is_held:
            self._outside = await self._isr_without_it()
        await self._requests.release()

    async def verify(self) -> Measured:
        since = await self._requests.bytes_since()
        return Measured(
            is_effective=since > 0,
            detail={"fetch_bytes_since": since, "was_outside_isr_of": self._outside},
        )

    async def _isr_without_it(self) -> list[str]:
        follower = id_of(self.victims[0])
        snapshot = await self._context.view.snapshot()
        return [
            f"{topic}-{partition}"
            for (topic, partition), state in sorted(snapshot.partitions.items())
            if follower in state.replicas and follower not in state.isr
        ]
