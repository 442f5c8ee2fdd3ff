"""``rolling-restart``: all brokers are restarted one after the other, as operators do for an upgrade.

Each is stopped by SIGTERM (controlled shutdown) and started again; the next one's turn comes when it is registered
again and in sync for all its partitions, and ``pause_s`` are over. Operators restart the controller last, so that it
moves once (``controller-last``); ``controller-first`` always restarts whoever is the controller, so that it moves as
often as it can; ``by-id`` does not look.

Effect: every broker is registered under a new broker epoch. A broker that is not back in ``back_within_s`` ends it
there: no effect, with the reason. Undone: all live and are registered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from msgspec import Meta

from nemesis.faults import selectors
from nemesis.faults.base import RESTART_S, DrawRange, Fault, FaultContext, Measured
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.departure import named
from nemesis.faults.graceful_restart import MAX_GRACE_S, GracefulRestartStrike
from nemesis.interfaces.brokers import BrokerEpochs
from nemesis.interfaces.processes import Processes
from nemesis.support.node_names import id_of, node_of

RestartOrder = Literal["controller-last", "controller-first", "by-id"]
MAX_PAUSE_S = 60.0
MAX_BACK_S = 120.0
POLL_INTERVAL_S = 0.1


class RollingRestart(Fault, frozen=True, kw_only=True):
    """Restart all brokers in order, each when the one before it is back."""

    name: ClassVar[str] = "rolling-restart"
    summary: ClassVar[str] = (
        "stops and starts all brokers, one after the other; each must be registered and in sync before the next"
    )
    effect: ClassVar[str] = (
        "every broker is registered under a new broker epoch; how long each took is noted"
    )
    heal: ClassVar[str] = "all brokers are registered"
    needs: ClassVar[frozenset[type]] = frozenset({Processes, BrokerEpochs})
    recovery_s: ClassVar[float] = 5 * RESTART_S

    order: Annotated[RestartOrder, Meta(description="which broker is next")] = "controller-last"
    pause_s: Annotated[
        float, Meta(ge=0, le=MAX_PAUSE_S, description="seconds between two brokers")
    ] = 0.0
    grace_s: Annotated[
        float, Meta(gt=0, le=MAX_GRACE_S, description="seconds between SIGTERM and SIGKILL")
    ] = 3.0
    back_within_s: Annotated[
        float,
        Meta(gt=0, le=MAX_BACK_S, description="seconds for a broker to be registered and in sync"),
    ] = 20.0

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del durations
        return cls(order=rng.choice(get_args(RestartOrder)), pause_s=rng.choice([0.0, 0.5]))

    async def aim(self, context: FaultContext, rng: Random) -> RollingRestartStrike:
        return RollingRestartStrike(context, await selectors.resolve("all", context, rng), self)


class RollingRestartStrike(GracefulRestartStrike):
    """A rolling restart of these brokers."""

    def __init__(self, context: FaultContext, victims: list[str], fault: RollingRestart) -> None:
        super().__init__(context, victims, grace_s=fault.grace_s)
        self._fault = fault
        self.intent |= {"order": fault.order, "pause_s": fault.pause_s}

    async def apply(self) -> Measured:
        waiting, done = list(self.victims), {}
        missing: str | None = None
        while waiting and missing is None:
            snapshot = await self._context.view.snapshot()
            node = next_in_turn(self._fault.order, waiting, snapshot)
            waiting.remove(node)
            before = snapshot.brokers.get(id_of(node))
            done[node], missing = await self._restart(node, 0 if before is None else before.czxid)
            if waiting and missing is None:
                await asyncio.sleep(self._fault.pause_s)
        return Measured(is_effective=missing is None, detail=done)

    async def verify(self) -> Measured:
        snapshot = await self._context.view.snapshot()
        missing = [node for node in self.victims if id_of(node) not in snapshot.brokers]
        return Measured(is_effective=not missing, detail={"not_registered": missing})

    async def _restart(self, node: str, epoch: int) -> tuple[dict[str, Any], str | None]:
        """Return what was measured of one broker, and why it is not back."""
        self._context.stopped.add(node)
        killed = await self.end(node)
        self._dead.append(node)
        began = asyncio.get_running_loop().time()
        started = await self._start(node)
        measured = {"killed": killed, "started": started, "epoch_before": epoch}
        missing = await self._until_back(node, epoch)
        if missing is not None:
            return measured | {"missing": missing}, missing
        back_s = round(asyncio.get_running_loop().time() - began, 2)
        return measured | {"back_s": back_s}, None

    async def _until_back(self, node: str, epoch: int) -> str | None:
        """Wait until nothing is missing; return what is when the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._fault.back_within_s
        while (label := missing_of(await self._context.view.snapshot(), node, epoch)) is not None:
            if loop.time() > deadline or not self._context.is_alive(node):
                return label
            await asyncio.sleep(POLL_INTERVAL_S)
        return None


def next_in_turn(sequence: RestartOrder, waiting: Sequence[str], snapshot: ClusterSnapshot) -> str:
    """Return the broker to be restarted next. It is asked each time: the controller moves."""
    controller = None if snapshot.controller is None else node_of(snapshot.controller.broker_id)
    by_id = sorted(waiting, key=id_of)
    if sequence == "controller-first":
        return min(by_id, key=lambda node: node != controller)
    if sequence == "controller-last":
        return min(by_id, key=lambda node: node == controller)
    return by_id[0]


def missing_of(snapshot: ClusterSnapshot, node: str, epoch: int) -> str | None:
    """Return what a broker lacks that had this broker epoch and was restarted: to be back and in sync."""
    registered = snapshot.brokers.get(id_of(node))
    if registered is None or registered.czxid <= epoch:
        return "it is not registered again"
    behind = [
        tp
        for tp, state in sorted(snapshot.partitions.items())
        if id_of(node) in state.target and id_of(node) not in state.isr
    ]
    return f"it is not in sync in {', '.join(named(behind))}" if behind else None
