"""How ``expire-session`` ends a session at a KRaft controller: the broker's heartbeats are held until it is fenced.

BrokerHeartbeat requests of the victim to all controllers, that of its own node too, are held at the links for longer
than ``broker.session.timeout.ms``. Process, clients, fetching and voting go on. As soon as the controller has fenced
the broker, the requests pass again, the held ones first.

Effect: heartbeats are seen held, and the broker is no longer registered. Undone: heartbeats get through again.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.held_requests import HeldRequests
from nemesis.interfaces.cluster import voters_of
from nemesis.interfaces.links import BROKER_HEARTBEAT_API_KEY, Link
from nemesis.support.node_names import id_of

FENCED_TIMEOUT_S: Final = 10.0
POLL_INTERVAL_S: Final = 0.1


class HeartbeatStrike:
    """Brokers whose controller is about to hear nothing from them."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        self._context = context
        links = frozenset(
            Link(victim, controller, api_key=BROKER_HEARTBEAT_API_KEY)
            for victim in victims
            for controller in voters_of(context.cluster)
        )
        self._requests = HeldRequests(context, links)
        self.victims = sorted(victims)
        self.intent: dict[str, Any] = {"held": "BrokerHeartbeat"}

    async def apply(self) -> Measured:
        await self._requests.hold()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FENCED_TIMEOUT_S
        while (registered := await self._registered()) and loop.time() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        await self._requests.wait_for_more(timeout_s=0.0, interval_s=POLL_INTERVAL_S)
        held = self._requests.held_bytes
        return Measured(
            is_effective=held > 0 and not registered,
            detail={"held_heartbeat_bytes": held, "still_registered": registered},
        )

    async def undo(self) -> None:
        await self._requests.release()

    async def verify(self) -> Measured:
        since = await self._requests.bytes_since()
        return Measured(is_effective=since > 0, detail={"heartbeat_bytes_since": since})

    async def _registered(self) -> list[str]:
        brokers = (await self._context.view.snapshot()).brokers
        return [node for node in self.victims if id_of(node) in brokers]
