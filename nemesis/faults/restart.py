"""``restart``: SIGKILL and a new start at once, faster than the session time-out.

ZooKeeper still holds the ephemerals of the previous life, so the controller may see neither death
nor birth, only a new broker epoch (a *bounce*, KIP-380). Effect: the old process is gone and
another one lives. Nothing is left to undo.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Self

from nemesis.faults import selectors
from nemesis.faults.base import (
    RESTART_S,
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    selector_field,
)
from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.processes import Processes


class Restart(Fault, frozen=True, kw_only=True):
    """Bounce the victim's processes, one after the other."""

    name: ClassVar[str] = "restart"
    summary: ClassVar[str] = (
        "kills brokers and starts them at once, one after the other; ZooKeeper may see a bounce instead of a death"
    )
    effect: ClassVar[str] = "the old process is gone, and another one lives"
    heal: ClassVar[str] = "the new process still lives"
    needs: ClassVar[frozenset[type]] = frozenset({Processes})
    recovery_s: ClassVar[float] = RESTART_S

    selector: Selector = selector_field("one")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del durations
        return cls(selector=rng.choice(["controller", "leader", "follower"]))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> RestartStrike:
        return RestartStrike(context, await selectors.resolve(self.selector, context, rng))


class RestartStrike:
    """One bounce that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        self._context = context
        self._dead: list[str] = []
        self._exited: NodeExited | None = None
        self.victims = victims
        self.intent: dict[str, Any] = {"signal": "SIGKILL", "then": "start"}

    async def apply(self) -> Measured:
        measured, bounced = {}, []
        for node in self.victims:
            if not self._context.is_alive(node):
                continue
            self._context.stopped.add(node)
            killed = await self.end(node)
            self._dead.append(node)
            is_dead = not self._context.is_alive(node)
            started = await self._start(node)
            measured[node] = {"killed": killed, "started": started}
            if is_dead and started.get("pid") != killed.get("pid"):
                bounced.append(node)
        return Measured(is_effective=bounced == self.victims, detail=measured)

    async def undo(self) -> None:
        for node in list(self._dead):
            await self._start(node)
        if self._exited is not None:
            raise self._exited

    async def verify(self) -> Measured:
        alive = {node: self._context.is_alive(node) for node in self.victims}
        return Measured(is_effective=all(alive.values()), detail={"alive": alive})

    async def end(self, node: str) -> dict[str, Any]:
        """End the process; returns what the runtime measured, ``pid`` among it."""
        return await self._context.processes.kill(node)

    async def _start(self, node: str) -> dict[str, Any]:
        self._dead.remove(node)
        try:
            return await self._context.processes.restart(node)
        except NodeExited as error:
            self._exited = error
            return {"exited": str(error)}
        finally:
            self._context.stopped.discard(node)
