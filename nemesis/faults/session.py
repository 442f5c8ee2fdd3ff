"""``expire-session``: the victim's session ends, while its process and its links are healthy.

With KRaft its heartbeats are held until it is fenced (``heartbeats``). A KRaft controller that is not a broker has no
session, and ``controller`` stands for some broker there. With ZooKeeper its session ends at once: that of
``/controller`` or ``/brokers/ids/N`` is taken over and closed
(``nemesis.runtimes.session_takeover`` says how). Its owner goes on acting until it learns of it: the zombie window,
without any other fault. A session of a broker that another fault has touched may be ended too: that is how
a cut-off controller is deposed at a chosen moment.

Effect: no ephemeral of that session is left, and no server keeps a connection of its owner, who therefore learns of it
as soon as it reaches one. A session cannot come back, so there is nothing to undo.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta

from nemesis.faults import selectors, trigger
from nemesis.faults.base import (
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    Strike,
    selector_field,
)
from nemesis.faults.heartbeats import HeartbeatStrike
from nemesis.faults.zookeeper_view import ZooKeeperView
from nemesis.interfaces.brokers import BrokerSessions
from nemesis.support.node_names import id_of

GONE_TIMEOUT_S = 2.0
POLL_INTERVAL_S = 0.05


class ExpireSession(Fault, frozen=True, kw_only=True):
    """End the session of the controller, or of any broker."""

    name: ClassVar[str] = "expire-session"
    summary: ClassVar[str] = (
        "ends the session of the controller or of a broker; with KRaft its heartbeats are held until it is fenced"
    )
    effect: ClassVar[str] = (
        "no ephemeral znode of the session is left, no server keeps its connection; with KRaft it is fenced"
    )
    heal: ClassVar[str] = (
        "the session is still gone (nothing to undo); with KRaft heartbeats pass again"
    )
    needs: ClassVar[frozenset[type]] = frozenset({BrokerSessions})
    shares_victim: ClassVar[bool] = True

    selector: Selector = selector_field("controller")
    when: Annotated[Literal["now", "broker-loss"], Meta(description="the [trigger](#moments)")] = (
        "now"
    )

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del durations
        return cls(selector=rng.choice(["controller", "controller", "one"]))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> Strike:
        victims = await selectors.resolve(
            self.selector, context, rng, shares_victim=True, only_brokers=True
        )
        sessions = await trigger.sessions_of(victims, context)
        if self.when == "broker-loss":
            await trigger.broker_loss(context)
            await trigger.require_same(self.selector, sessions, context)
        if isinstance(context.view, ZooKeeperView):
            return ExpireSessionStrike(context, sessions)
        return HeartbeatStrike(context, victims)


class ExpireSessionStrike:
    """Sessions that are about to end."""

    def __init__(self, context: FaultContext, sessions: dict[str, int]) -> None:
        self._context = context
        self._sessions = sessions
        self.victims = sorted(sessions)
        self.intent: dict[str, Any] = {"sessions": sessions}

    async def apply(self) -> Measured:
        taken = {node: await self._end(node) for node in self.victims}
        gone = await self._gone()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GONE_TIMEOUT_S
        while not gone and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
            gone = await self._gone()
        return Measured(
            is_effective=gone and all(taken.values()),
            detail={"sessions": self._sessions, "closed": taken, "ephemerals_gone": gone},
        )

    async def undo(self) -> None:
        """A session that has ended stays ended."""

    async def verify(self) -> Measured:
        gone = await self._gone()
        return Measured(is_effective=gone, detail={"sessions": self._sessions, "ended": gone})

    async def _end(self, node: str) -> bool:
        """End the node's session; if it is over by now, the one in which the node is registered instead."""
        zookeeper = self._context.zookeeper
        if await zookeeper.end_session(self._sessions[node]):
            return True
        owner = (await self._context.view.snapshot()).brokers.get(id_of(node))
        if owner is None or owner.session == self._sessions[node]:
            return False
        self._sessions[node] = owner.session
        return await zookeeper.end_session(owner.session)

    async def _gone(self) -> bool:
        owners = await self._context.zookeeper_view.sessions()
        return owners.isdisjoint(self._sessions.values())
