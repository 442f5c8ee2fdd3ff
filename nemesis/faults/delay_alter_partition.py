"""``delay-alter-partition``: what leaders propose for their ISRs is held until it is about a life that is over.

AlterPartition requests are held on all links. The session of the victim is ended: it leaves its ISRs, registers anew,
catches up, and its leaders propose to take it back. As soon as such a proposal is held the victim's session is ended
once more. It is in no ISR of those leaders, so no leader epoch changes, and at the heal proposals arrive that nothing
but the broker epochs of their members tells from present ones: the trigger of KIP-903 (KAFKA-14617).

Effect: bytes of AlterPartition are seen held at the links, and the victim has registered twice. Undone: they get
through. What the controller proposes to itself crosses no link: a broker that follows nobody else is never a victim.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar, Final, Self

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
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.held_requests import HeldRequests
from nemesis.interfaces.brokers import AlterPartitionRequests
from nemesis.interfaces.ensemble import Ensemble
from nemesis.interfaces.links import ALTER_PARTITION_API_KEY, Link
from nemesis.interfaces.network import RequestLinks
from nemesis.support.node_names import id_of

STEP_TIMEOUT_S: Final = 3.0
"""For the victim to register anew, and for its leaders to propose it."""
POLL_INTERVAL_S: Final = 0.05
NOBODY: Final = -1
"""Leads a partition whose replicas are all out."""


class DelayAlterPartition(Fault, frozen=True, kw_only=True):
    """Hold AlterPartition for ``duration_s`` after the victim has come back twice."""

    name: ClassVar[str] = "delay-alter-partition"
    summary: ClassVar[str] = (
        "holds AlterPartition among brokers while one broker registers twice, so leaders propose a stale broker epoch"
    )
    effect: ClassVar[str] = "bytes of AlterPartition are held, and the broker has registered twice"
    heal: ClassVar[str] = "AlterPartition requests pass again"
    needs: ClassVar[frozenset[type]] = frozenset({RequestLinks, Ensemble, AlterPartitionRequests})

    selector: Selector = selector_field("bystander")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> DelayAlterPartitionStrike:
        victim = (await selectors.resolve(self.selector, context, rng))[0]
        if not is_proposed_on_links(victim, await context.view.snapshot()):
            raise SelectorUnresolved(f"no leader would propose {victim} to another broker")
        return DelayAlterPartitionStrike(context, victim)


def is_proposed_on_links(node: str, snapshot: ClusterSnapshot) -> bool:
    """Whether the node follows a leader that is not the controller, which would ask itself to take it back."""
    if snapshot.controller is None:
        return False
    broker, controller = id_of(node), snapshot.controller.broker_id
    return any(
        broker in state.replicas and state.leader not in (broker, controller, NOBODY)
        for state in snapshot.partitions.values()
    )


class DelayAlterPartitionStrike:
    """A broker that its leaders will ask for in vain."""

    def __init__(self, context: FaultContext, victim: str) -> None:
        self._context = context
        brokers = context.cluster.brokers
        links = frozenset(
            Link(leader, controller, api_key=ALTER_PARTITION_API_KEY)
            for leader in brokers
            for controller in brokers
            if leader != controller
        )
        self._requests = HeldRequests(context, links)
        self.victims = [victim]
        self.intent: dict[str, Any] = {"held": "AlterPartition", "member": victim}

    async def apply(self) -> Measured:
        await self._requests.hold()
        renewed = await self._renew_session()
        await self._requests.wait_for_more(timeout_s=STEP_TIMEOUT_S, interval_s=POLL_INTERVAL_S)
        held = self._requests.held_bytes
        renewed += await self._renew_session()
        return Measured(
            is_effective=held > 0 and renewed == 2,
            detail={"held_alter_partition_bytes": held, "registrations": renewed},
        )

    async def undo(self) -> None:
        await self._requests.release()

    async def verify(self) -> Measured:
        since = await self._requests.bytes_since()
        return Measured(is_effective=since > 0, detail={"alter_partition_bytes_since": since})

    async def _renew_session(self) -> int:
        """End the victim's session and wait for the next; return how many registrations that made."""
        before = await self._session()
        if before is None:
            return 0
        await self._context.zookeeper.end_session(before)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + STEP_TIMEOUT_S
        while loop.time() < deadline:
            if await self._session() not in (None, before):
                return 1
            await asyncio.sleep(POLL_INTERVAL_S)
        return 0

    async def _session(self) -> int | None:
        """The session in which the victim is registered."""
        owner = (await self._context.view.snapshot()).brokers.get(id_of(self.victims[0]))
        return None if owner is None else owner.session
