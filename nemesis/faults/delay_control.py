"""``delay-control``: what controllers tell one broker is held while leaders change several times, and arrives late.

LeaderAndIsr, StopReplica and UpdateMetadata to the victim are held, whoever sends them; its clients, its fetching and
its session work. So that there is something to be told, the ZooKeeper sessions of other brokers are ended one after
the other: each time its replicas leave their ISRs and what it led gets another leader, in new leader epochs. The
controller's own session is spared where there is another: the victim might be elected, and would hear itself. What a
controller sends again after its time-out is held as well, so at the heal it arrives in order and twice.

That a broker acts on old orders while others are two leader epochs ahead is what the hard bugs of replication need:
KAFKA-7395 and, in the TLA+ specifications of Kafka's replication, every mutant of KIP-320 that is wrong.

Effect: bytes of control requests are seen held at the links. Undone: they get through.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import DrawRange, Fault, FaultContext, Measured, Selector, selector_field
from nemesis.faults.churn import controller_of, end_a_session
from nemesis.faults.held_requests import HeldRequests
from nemesis.interfaces.ensemble import Ensemble
from nemesis.interfaces.links import CONTROL_API_KEYS, Link
from nemesis.interfaces.network import RequestLinks
from nemesis.support.node_names import node_of

ELECTION_TIMEOUT_S = 3.0
"""From the end of a session until orders that follow from it are held."""
POLL_INTERVAL_S = 0.1


class DelayControl(Fault, frozen=True, kw_only=True):
    """Hold what controllers tell the victim for ``duration_s`` after ``elections`` sessions have ended."""

    name: ClassVar[str] = "delay-control"
    summary: ClassVar[str] = (
        "holds LeaderAndIsr, StopReplica and UpdateMetadata to one broker and ends sessions of other brokers meanwhile"
    )
    effect: ClassVar[str] = "bytes of control requests are held"
    heal: ClassVar[str] = "control requests pass again"
    needs: ClassVar[frozenset[type]] = frozenset({RequestLinks, Ensemble})

    selector: Selector = selector_field("bystander")
    elections: Annotated[
        int, Meta(ge=1, le=10, description="sessions of other brokers that are ended")
    ] = 3

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng), elections=rng.randint(2, 4))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> DelayControlStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        return DelayControlStrike(context, victim, rng, elections=self.elections)


class DelayControlStrike:
    """A broker that is about to hear nothing from controllers."""

    def __init__(self, context: FaultContext, victim: str, rng: Random, *, elections: int) -> None:
        self._context = context
        self._rng = rng
        self._elections = elections
        links = frozenset(
            Link(sender, victim, api_key=key)
            for sender in context.cluster.brokers
            if sender != victim
            for key in CONTROL_API_KEYS
        )
        self._requests = HeldRequests(context, links)
        self.victims = [victim]
        self.intent: dict[str, Any] = {"held": "control requests", "broker": victim}

    async def apply(self) -> Measured:
        await self._requests.hold()
        ended = []
        for _ in range(self._elections):
            ended += await self._end_a_session()
            await self._requests.wait_for_more(
                timeout_s=ELECTION_TIMEOUT_S, interval_s=POLL_INTERVAL_S
            )
        held = self._requests.held_bytes
        return Measured(
            is_effective=held > 0, detail={"held_control_bytes": held, "sessions_ended": ended}
        )

    async def undo(self) -> None:
        await self._requests.release()

    async def verify(self) -> Measured:
        since = await self._requests.bytes_since()
        return Measured(is_effective=since > 0, detail={"control_bytes_since": since})

    async def _end_a_session(self) -> list[str]:
        """End the session of another broker; if the victim has become the controller, its own, so that others send."""
        snapshot = await self._context.view.snapshot()
        spared = set(self.victims)
        if controller_of(snapshot) in spared:
            spared = set(map(node_of, snapshot.brokers)) - spared
        return await end_a_session(self._context, snapshot, self._rng, spared=spared)
