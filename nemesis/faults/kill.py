"""``kill`` and ``kill-controller``: SIGKILL, and a new start on the same data when the time is over.

Effect: the kernel says that the process is gone. Undone: a new process of the node lives.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar, Self

from nemesis.faults import targets
from nemesis.faults.base import RESTART_S, DrawRange, Fault, Measured, Place
from nemesis.interfaces.runtime import Capability


class Kill(Fault, frozen=True, kw_only=True):
    """Kill the target's processes and start them again after ``duration_s``."""

    name: ClassVar[str] = "kill"
    summary: ClassVar[str] = "kill brokers with SIGKILL and start them again later"
    capability: ClassVar[Capability] = Capability.KILL
    recovery_s: ClassVar[float] = RESTART_S

    target: str = "one"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        target = rng.choice(["one", "leader", "follower"])
        return cls(target=target, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        targets.check(self.target, nodes)

    async def aim(self, place: Place, rng: Random) -> KillStrike:
        return KillStrike(place, await targets.resolve(self.target, place, rng))


class KillController(Kill, frozen=True, kw_only=True):
    """Kill whoever is the controller at that moment."""

    name: ClassVar[str] = "kill-controller"
    summary: ClassVar[str] = "kill the controller's broker with SIGKILL and start it again later"

    target: str = "controller"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(duration_s=durations.draw(rng))


class KillStrike:
    """One kill that has found its victims."""

    def __init__(self, place: Place, victims: list[str]) -> None:
        self._place = place
        self._dead: list[str] = []
        self._restarted: dict[str, Any] = {}
        self.targets = victims
        self.intent: dict[str, Any] = {"signal": "SIGKILL"}

    async def apply(self) -> Measured:
        runtime, measured = self._place.runtime, {}
        for node in self.targets:
            self._place.stopped.add(node)
            if runtime.is_alive(node):
                measured[node] = await self._end(node)
                self._dead.append(node)
        dead = [node for node in self._dead if not runtime.is_alive(node)]
        return Measured(is_effective=dead == self.targets, detail=measured)

    async def _end(self, node: str) -> dict[str, Any]:
        return await self._place.runtime.kill(node)

    async def undo(self) -> None:
        # Together: a member of ZooKeeper answers only when a quorum is there.
        dead, self._dead = self._dead, []
        starts = (self._place.runtime.restart(node) for node in dead)
        results = await asyncio.gather(*starts, return_exceptions=True)
        self._place.stopped.difference_update(self.targets)
        for node, result in zip(dead, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            self._restarted[node] = result

    async def verify(self) -> Measured:
        answers = {node: self._place.runtime.is_alive(node) for node in self.targets}
        return Measured(
            is_effective=all(answers.values()),
            detail={"alive": answers, "restarted": self._restarted},
        )
