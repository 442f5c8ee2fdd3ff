"""``kill`` and ``kill-controller``: SIGKILL, and a new start on the same data when the time is over.

Effect: the kernel says that the process is gone. Undone: a new process of the node lives.
"""

from __future__ import annotations

import asyncio
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
from nemesis.interfaces.processes import Processes


class Kill(Fault, frozen=True, kw_only=True):
    """Kill the victim's processes and start them again after ``duration_s``."""

    name: ClassVar[str] = "kill"
    summary: ClassVar[str] = (
        "kills brokers (SIGKILL); they start again on their data after `duration_s`"
    )
    effect: ClassVar[str] = "the process is gone"
    heal: ClassVar[str] = "a new process of the node lives"
    needs: ClassVar[frozenset[type]] = frozenset({Processes})
    recovery_s: ClassVar[float] = RESTART_S

    selector: Selector = selector_field("one")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        selector = rng.choice(["one", "leader", "follower"])
        return cls(selector=selector, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> KillStrike:
        return KillStrike(context, await selectors.resolve(self.selector, context, rng))


class KillController(Kill, frozen=True, kw_only=True):
    """Kill whoever is the controller at that moment."""

    name: ClassVar[str] = "kill-controller"
    summary: ClassVar[str] = (
        "kills the controller's broker (SIGKILL); it starts again on its data after `duration_s`"
    )

    selector: Selector = selector_field("controller")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))


class KillStrike:
    """One kill that has found its victims."""

    def __init__(self, context: FaultContext, victims: list[str]) -> None:
        self._context = context
        self._dead: list[str] = []
        self._restarted: dict[str, Any] = {}
        self.victims = victims
        self.intent: dict[str, Any] = {"signal": "SIGKILL"}

    async def apply(self) -> Measured:
        measured = {}
        for node in self.victims:
            self._context.stopped.add(node)
            if self._context.is_alive(node):
                measured[node] = await self._end(node)
                self._dead.append(node)
        dead = [node for node in self._dead if not self._context.is_alive(node)]
        return Measured(is_effective=dead == self.victims, detail=measured)

    async def _end(self, node: str) -> dict[str, Any]:
        return await self._context.processes.kill(node)

    async def undo(self) -> None:
        # Together: a member of ZooKeeper answers only when a quorum is there.
        dead, self._dead = self._dead, []
        starts = (self._context.processes.restart(node) for node in dead)
        results = await asyncio.gather(*starts, return_exceptions=True)
        self._context.stopped.difference_update(self.victims)
        for node, result in zip(dead, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            self._restarted[node] = result

    async def verify(self) -> Measured:
        answers = {node: self._context.is_alive(node) for node in self.victims}
        return Measured(
            is_effective=all(answers.values()),
            detail={"alive": answers, "restarted": self._restarted},
        )
