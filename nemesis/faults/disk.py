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
from nemesis.interfaces.disks import Disks, LogDirs
from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.processes import Processes
from nemesis.interfaces.unsupported import supported

OPERATIONS = ("read", "write", "fsync")
MAX_LOG_DIRS = 12
"""A multiple of all numbers of log directories that are likely: each is as likely as the others."""


class DiskFull(Fault, frozen=True, kw_only=True):
    """Let the victims' disks take no more for ``duration_s``."""

    name: ClassVar[str] = "disk-full"
    summary: ClassVar[str] = (
        "a broker's disk is full (ENOSPC); after `duration_s` it has room, and the broker starts again"
    )
    effect: ClassVar[str] = "a probe of the disk gets ENOSPC"
    heal: ClassVar[str] = "a probe gets no error, and a new process of the node lives"
    needs: ClassVar[frozenset[type]] = frozenset({Disks, Processes})
    recovery_s: ClassVar[float] = RESTART_S
    error: ClassVar[str] = "ENOSPC"

    selector: Selector = selector_field("one")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        selector = rng.choice(["one", "leader", "follower", "controller"])
        return cls(selector=selector, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)

    async def aim(self, context: FaultContext, rng: Random) -> DiskStrike:
        return DiskStrike(context, await selectors.resolve(self.selector, context, rng), self.error)


class DiskFailure(DiskFull, frozen=True, kw_only=True):
    """Let the victims' disks fail for ``duration_s``."""

    name: ClassVar[str] = "disk-failure"
    summary: ClassVar[str] = (
        "a broker's disk fails every read, write and sync (EIO); after `duration_s` it works, and the broker "
        "starts again"
    )
    effect: ClassVar[str] = "a probe of the disk gets EIO"
    error: ClassVar[str] = "EIO"


class LogDirFailure(DiskFull, frozen=True, kw_only=True):
    """Let one log directory of each victim fail for ``duration_s``."""

    name: ClassVar[str] = "log-dir-failure"
    summary: ClassVar[str] = (
        "one log directory of a broker fails (EIO); the broker serves the others (KIP-112); needs `log_dirs` "
        "of 2 or more"
    )
    effect: ClassVar[str] = (
        "a probe of that directory gets EIO; results of probes of the others are noted"
    )
    needs: ClassVar[frozenset[type]] = frozenset({Disks, LogDirs, Processes})
    error: ClassVar[str] = "EIO"

    async def aim(self, context: FaultContext, rng: Random) -> DiskStrike:
        victims = await selectors.resolve(self.selector, context, rng)
        return DiskStrike(context, victims, self.error, log_dir=rng.randrange(MAX_LOG_DIRS))


class DiskStrike:
    """One fault of disks that has found its victims."""

    def __init__(
        self, context: FaultContext, victims: list[str], error: str, *, log_dir: int | None = None
    ) -> None:
        """``log_dir``: which of the log directories fails, counted round; None for the whole disk."""
        self._context = context
        self._error = error
        self._log_dir = log_dir
        self._struck: list[str] = []
        self._healed: dict[str, dict[str, Any]] = {}
        self._restarted: dict[str, Any] = {}
        self.victims = victims
        self.intent: dict[str, Any] = {"error": error}

    async def apply(self) -> Measured:
        measured: dict[str, Any] = {}
        for node in self.victims:
            self._struck.append(node)
            measured[node] = await self._break(node)
        is_effective = all(probe.get("write") == self._error for probe in measured.values())
        return Measured(is_effective=is_effective, detail=measured)

    async def _break(self, node: str) -> dict[str, Any]:
        disks = self._context.disks
        if self._error == DiskFull.error:
            return await disks.fill(node)
        if self._log_dir is None:
            return await disks.fail(node)
        return await supported(disks.log_dirs).fail(node, self._log_dir)

    async def undo(self) -> None:
        exited: NodeExited | None = None
        while self._struck:
            node = self._struck.pop()
            self._healed[node] = await self._context.disks.heal(node)
            try:
                self._restarted[node] = await self._restart(node)
            except NodeExited as error:  # the others are owed their disks and their start
                exited = error
        if exited is not None:
            raise exited

    async def verify(self) -> Measured:
        answers = {node: self._context.is_alive(node) for node in self.victims}
        works = all(
            node in self._healed
            and all(self._healed[node].get(operation) is None for operation in OPERATIONS)
            for node in self.victims
        )
        return Measured(
            is_effective=works and all(answers.values()),
            detail={"disk": self._healed, "alive": answers, "restarted": self._restarted},
        )

    async def _restart(self, node: str) -> dict[str, Any]:
        """Bounce the broker, or start it if it could not bear its disk."""
        processes = self._context.processes
        self._context.stopped.add(node)
        try:
            if processes.is_alive(node):
                await processes.kill(node)
            return await processes.restart(node)
        finally:
            self._context.stopped.discard(node)
