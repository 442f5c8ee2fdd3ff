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
from typing import Any, ClassVar, Literal, Self

from nemesis.faults import targets
from nemesis.faults import trigger as moment
from nemesis.faults.base import DrawRange, Fault, Measured, Place, TargetUnresolved
from nemesis.interfaces.runtime import Capability


class Pause(Fault, frozen=True, kw_only=True):
    """Stop the target's processes for ``duration_s``."""

    name: ClassVar[str] = "pause"
    summary: ClassVar[str] = "stop broker processes with SIGSTOP and let them go on later"
    capability: ClassVar[Capability] = Capability.PAUSE

    target: str = "one"
    when: Literal["now", "broker-loss", "new-controller"] = "now"
    """``new-controller`` chooses the target itself."""

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        target = rng.choice(["controller", "controller", "leader", "follower", "one"])
        return cls(target=target, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        targets.check(self.target, nodes)

    async def aim(self, place: Place, rng: Random) -> PauseStrike:
        if self.when == "new-controller":
            winner = await moment.new_controller(place)
            if not place.runtime.is_alive(winner):
                raise TargetUnresolved(f"{winner} was elected and died")
            return PauseStrike(place, [winner])
        victims = await targets.resolve(self.target, place, rng)
        if self.when == "broker-loss":
            sessions = await moment.sessions_of(victims, place)
            await moment.broker_loss(place)
            await moment.require_same(self.target, sessions, place)
        return PauseStrike(place, victims)


class PauseStrike:
    """One pause that has found its victims."""

    def __init__(self, place: Place, victims: list[str]) -> None:
        self._place = place
        self._paused: list[str] = []
        self._resumed: dict[str, Any] = {}
        self.targets = victims
        self.intent: dict[str, Any] = {"signal": "SIGSTOP"}

    async def apply(self) -> Measured:
        measured: dict[str, Any] = {}
        for node in self.targets:
            if not self._place.runtime.is_alive(node):
                continue
            self._place.stopped.add(node)
            self._paused.append(node)
            measured[node] = await self._place.runtime.pause(node)
        stopped = [node for node in self.targets if measured.get(node, {}).get("paused") is True]
        return Measured(is_effective=stopped == self.targets, detail=measured)

    async def undo(self) -> None:
        while self._paused:
            node = self._paused.pop()
            if self._place.runtime.is_alive(node):
                self._resumed[node] = await self._place.runtime.resume(node)
        self._place.stopped.difference_update(self.targets)

    async def verify(self) -> Measured:
        running = [n for n in self.targets if self._resumed.get(n, {}).get("paused") is False]
        return Measured(is_effective=running == self.targets, detail=dict(self._resumed))
