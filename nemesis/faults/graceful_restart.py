"""``graceful-restart``: SIGTERM and a new start, as an operator restarts a broker.

The broker asks the controller to move its leaders before it goes (controlled shutdown); where that fails, because
there is no controller or nobody else in sync, it goes after its retries, or after ``grace_s`` by SIGKILL. Effect: as
for ``restart``; which signal ended the process is noted.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import FaultContext
from nemesis.faults.restart import Restart, RestartStrike

MAX_GRACE_S = 30.0


class GracefulRestart(Restart, frozen=True, kw_only=True):
    """Stop the victim's processes in order and start them again, one after the other."""

    name: ClassVar[str] = "graceful-restart"
    summary: ClassVar[str] = (
        "stops brokers with SIGTERM (controlled shutdown) and starts them again, one after the other"
    )
    recovery_s: ClassVar[float] = 2 * Restart.recovery_s

    grace_s: Annotated[
        float, Meta(gt=0, le=MAX_GRACE_S, description="seconds between SIGTERM and SIGKILL")
    ] = 3.0

    async def aim(self, context: FaultContext, rng: Random) -> GracefulRestartStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        return GracefulRestartStrike(context, victims, grace_s=self.grace_s)


class GracefulRestartStrike(RestartStrike):
    """One restart in order that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str], *, grace_s: float) -> None:
        super().__init__(context, victims)
        self._grace_s = grace_s
        self.intent = {"signal": "SIGTERM", "grace_s": grace_s, "then": "start"}

    async def end(self, node: str) -> dict[str, Any]:
        return await self._context.processes.terminate(node, grace_s=self._grace_s)
