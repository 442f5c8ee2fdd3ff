"""``disk-full``, ``disk-failure``, ``log-dir-failure``: a disk takes no more, or fails, as a whole or in part.

A broker whose last log directory failed halts, as in Kafka; one that had nothing to write meanwhile has not noticed.
So the heal is a disk that works again and a new start of the broker. With several log directories one can fail alone
(KIP-112): its replicas go offline, and the broker serves the others on.

Effect: a probe of the disk meets ENOSPC or EIO. Undone: it meets nothing any more, and a new process of the node
lives. In simulation, how many calls of the broker were refused is written down at the heal.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Self

from nemesis.faults import targets
from nemesis.faults.base import RESTART_S, DrawRange, Fault, Measured, Place
from nemesis.interfaces.runtime import Capability, NodeExited

OPERATIONS = ("read", "write", "fsync")
MAX_LOG_DIRS = 12
"""A multiple of all numbers of log directories that are likely: each is as likely as the others."""


class DiskFull(Fault, frozen=True, kw_only=True):
    """Let the targets' disks take no more for ``duration_s``."""

    name: ClassVar[str] = "disk-full"
    summary: ClassVar[str] = (
        "a broker's disk is full (ENOSPC); freed and the broker restarted later"
    )
    capability: ClassVar[Capability] = Capability.DISK
    recovery_s: ClassVar[float] = RESTART_S
    error: ClassVar[str] = "ENOSPC"

    target: str = "one"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        target = rng.choice(["one", "leader", "follower", "controller"])
        return cls(target=target, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        targets.check(self.target, nodes)

    async def aim(self, place: Place, rng: Random) -> DiskStrike:
        return DiskStrike(place, await targets.resolve(self.target, place, rng), self.error)


class DiskFailure(DiskFull, frozen=True, kw_only=True):
    """Let the targets' disks fail for ``duration_s``."""

    name: ClassVar[str] = "disk-failure"
    summary: ClassVar[str] = "a broker's disk fails (EIO); mended and the broker restarted later"
    error: ClassVar[str] = "EIO"


class LogDirFailure(DiskFull, frozen=True, kw_only=True):
    """Let one log directory of each target fail for ``duration_s``."""

    name: ClassVar[str] = "log-dir-failure"
    summary: ClassVar[str] = (
        "one of a broker's log directories fails (EIO); mended and the broker restarted later"
    )
    capability: ClassVar[Capability] = Capability.LOG_DIR
    error: ClassVar[str] = "EIO"

    async def aim(self, place: Place, rng: Random) -> DiskStrike:
        victims = await targets.resolve(self.target, place, rng)
        return DiskStrike(place, victims, self.error, log_dir=rng.randrange(MAX_LOG_DIRS))


class DiskStrike:
    """One fault of disks that has found its victims."""

    def __init__(
        self, place: Place, victims: list[str], error: str, *, log_dir: int | None = None
    ) -> None:
        """``log_dir``: which of the log directories fails, counted round; None for the whole disk."""
        self._place = place
        self._error = error
        self._log_dir = log_dir
        self._struck: list[str] = []
        self._healed: dict[str, dict[str, Any]] = {}
        self._restarted: dict[str, Any] = {}
        self.targets = victims
        self.intent: dict[str, Any] = {"error": error}

    async def apply(self) -> Measured:
        measured: dict[str, Any] = {}
        for node in self.targets:
            self._struck.append(node)
            measured[node] = await self._break(node)
        is_effective = all(probe.get("write") == self._error for probe in measured.values())
        return Measured(is_effective=is_effective, detail=measured)

    async def _break(self, node: str) -> dict[str, Any]:
        runtime = self._place.runtime
        if self._error == DiskFull.error:
            return await runtime.fill_disk(node)
        if self._log_dir is None:
            return await runtime.fail_disk(node)
        return await runtime.fail_log_dir(node, self._log_dir)

    async def undo(self) -> None:
        exited: NodeExited | None = None
        while self._struck:
            node = self._struck.pop()
            self._healed[node] = await self._place.runtime.heal_disk(node)
            try:
                self._restarted[node] = await self._restart(node)
            except NodeExited as error:  # the others are owed their disks and their start
                exited = error
        if exited is not None:
            raise exited

    async def verify(self) -> Measured:
        runtime = self._place.runtime
        answers = {node: runtime.is_alive(node) for node in self.targets}
        works = all(
            node in self._healed
            and all(self._healed[node].get(operation) is None for operation in OPERATIONS)
            for node in self.targets
        )
        return Measured(
            is_effective=works and all(answers.values()),
            detail={"disk": self._healed, "alive": answers, "restarted": self._restarted},
        )

    async def _restart(self, node: str) -> dict[str, Any]:
        """Bounce the broker, or start it if it could not bear its disk."""
        runtime = self._place.runtime
        self._place.stopped.add(node)
        try:
            if runtime.is_alive(node):
                await runtime.kill(node)
            return await runtime.restart(node)
        finally:
            self._place.stopped.discard(node)
