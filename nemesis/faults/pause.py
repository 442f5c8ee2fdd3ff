"""``pause``: SIGSTOP, and SIGCONT when the time is over.

A process that sleeps longer than its session wakes up as a zombie: it still believes that it is
controller or leader, and everything that it had decided but not yet sent goes out now. With
``when: broker-loss`` the controller is stopped at the moment a broker vanishes from ZooKeeper, in
the middle of what it does about it; with ``when: new-controller`` a controller is stopped as soon
as it is elected.

Effect: the kernel says that the process is stopped. Undone: the kernel says that it is not.
"""

from __future__ import annotations

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
    SelectorUnresolved,
    selector_field,
)
from nemesis.interfaces.processes import Processes


class Pause(Fault, frozen=True, kw_only=True):
    """Stop the victim's processes for ``duration_s``."""

    name: ClassVar[str] = "pause"
    summary: ClassVar[str] = (
        "stops brokers (SIGSTOP or the freezer); they run again after `duration_s`"
    )
    effect: ClassVar[str] = "the kernel reports that the process is stopped"
    heal: ClassVar[str] = "the kernel reports that the process runs"
    needs: ClassVar[frozenset[type]] = frozenset({Processes})

    selector: Selector = selector_field("one")
    when: Annotated[
        Literal["now", "broker-loss", "new-controller"], Meta(description="the [trigger](#moments)")
    ] = "now"
    """``new-controller`` chooses the victim itself."""

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        selector = rng.choice(["controller", "controller", "leader", "follower", "one"])
        return cls(selector=selector, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> PauseStrike:
        if self.when == "new-controller":
            winner = await trigger.new_controller(context)
            if not context.is_alive(winner):
                raise SelectorUnresolved(f"{winner} was elected and died")
            return PauseStrike(context, [winner])
        victims = await selectors.resolve(self.selector, context, rng)
        if self.when == "broker-loss":
            sessions = await trigger.sessions_of(victims, context)
            await trigger.broker_loss(context)
            await trigger.require_same(self.selector, sessions, context)
        return PauseStrike(context, victims)


class PauseStrike:
    """One pause that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        self._context = context
        self._paused: list[str] = []
        self._resumed: dict[str, Any] = {}
        self.victims = victims
        self.intent: dict[str, Any] = {"signal": "SIGSTOP"}

    async def apply(self) -> Measured:
        measured: dict[str, Any] = {}
        for node in self.victims:
            if not self._context.is_alive(node):
                continue
            self._context.stopped.add(node)
            self._paused.append(node)
            measured[node] = await self._context.processes.pause(node)
        stopped = [node for node in self.victims if measured.get(node, {}).get("paused") is True]
        return Measured(is_effective=stopped == self.victims, detail=measured)

    async def undo(self) -> None:
        while self._paused:
            node = self._paused.pop()
            if self._context.is_alive(node):
                self._resumed[node] = await self._context.processes.resume(node)
        self._context.stopped.difference_update(self.victims)

    async def verify(self) -> Measured:
        running = [n for n in self.victims if self._resumed.get(n, {}).get("paused") is False]
        return Measured(is_effective=running == self.victims, detail=dict(self._resumed))
