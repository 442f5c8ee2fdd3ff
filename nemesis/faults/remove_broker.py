"""``remove-broker``: an operator takes a broker out of the cluster, and later puts it in again.

Its replicas are moved to other brokers by reassignment, where there is none by having one replica fewer; when it has
none it stops in order. What cannot be moved in ``patience_s`` stays, the moves are taken back, and the removal is given
up: the fault had no effect. Effect: the process is gone, its registration too, and no partition names it.

Undone: the same broker starts on its disk and gets back what it had. So the cluster is what it was: with three brokers
partitions would otherwise be left with two replicas, and later faults would meet another cluster than the plan was
made for. Partitions that others have moved meanwhile, or deleted, are left to them.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

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
from nemesis.faults.departure import depart, described, named
from nemesis.faults.moves import LEAST_REPLICAS, Moves
from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.processes import Processes
from nemesis.support.errors import UsageError
from nemesis.support.node_names import id_of

LEAST_BROKERS = LEAST_REPLICAS + 1
MAX_PATIENCE_S = 120.0
UNDO_PATIENCE_S = 30.0
"""Other faults may be in the way of the first moves, not of the last: by then they are over."""


class RemoveBroker(Fault, frozen=True, kw_only=True):
    """Move the victim's replicas away and stop it; let it come back when ``duration_s`` is over."""

    name: ClassVar[str] = "remove-broker"
    summary: ClassVar[str] = (
        "a broker's replicas are moved away, then it stops; it comes back after `duration_s`"
    )
    effect: ClassVar[str] = "its process is gone, it is not registered, and no partition names it"
    heal: ClassVar[str] = "it is registered, and the partitions are where they were"
    needs: ClassVar[frozenset[type]] = frozenset({Processes})
    recovery_s: ClassVar[float] = 2 * RESTART_S

    selector: Selector = selector_field("one")
    patience_s: Annotated[
        float, Meta(gt=0, le=MAX_PATIENCE_S, description="seconds for replicas to be moved")
    ] = 20.0

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        victim = rng.choice(["one", "controller", "leader"])
        return cls(selector=victim, duration_s=durations.draw(rng))

    def check(self, nodes: frozenset[str]) -> None:
        selectors.check(self.selector, nodes)
        brokers = [node for node in nodes if node.startswith("broker-")]
        if len(brokers) < LEAST_BROKERS:
            raise UsageError(
                f"{self.name} needs {LEAST_BROKERS} brokers at least, this cluster has {len(brokers)}"
            )

    async def aim(self, context: FaultContext, rng: Random) -> RemoveBrokerStrike:
        victim = (await selectors.resolve(self.selector, context, rng, only_brokers=True))[0]
        return RemoveBrokerStrike(context, victim, rng, patience_s=self.patience_s)


class RemoveBrokerStrike:
    """A broker that is about to leave for a while."""

    def __init__(
        self, context: FaultContext, victim: str, rng: Random, *, patience_s: float
    ) -> None:
        self._context = context
        self._moves = Moves(context, rng)
        self._patience_s = patience_s
        self.victims = [victim]
        self.intent: dict[str, Any] = {"then": "move replicas away, SIGTERM"}

    async def apply(self) -> Measured:
        [node] = self.victims
        try:
            left = await depart(self._context, node, self._moves, patience_s=self._patience_s)
        except NodeExited as error:
            left = Measured(is_effective=False, detail={"exited": str(error)})
        if left.is_effective:
            return left
        await self._back()
        return Measured(is_effective=False, detail={"given_up": left.detail})

    async def undo(self) -> None:
        node, processes = self.victims[0], self._context.processes
        if not processes.is_alive(node):
            try:
                await processes.restart(node)
            finally:
                self._context.stopped.discard(node)
        await self._back()

    async def verify(self) -> Measured:
        snapshot = await self._context.view.snapshot()
        node = self.victims[0]
        is_registered = id_of(node) in snapshot.brokers
        astray = named(sorted(self._moves.astray(snapshot)))
        return Measured(
            is_effective=is_registered and not astray,
            detail={"registered": is_registered, **described(not_back=astray)},
        )

    async def _back(self) -> None:
        await self._moves.back(deadline=asyncio.get_running_loop().time() + UNDO_PATIENCE_S)
