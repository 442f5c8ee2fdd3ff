"""``add-broker``: a new broker joins the running cluster, and gets replicas.

It has the next id, an empty disk, an address of its own, and a trace and log as any other; from then on it counts for
whoever looks at the cluster. As operators do, replicas of some partitions are moved onto it. Effect: it is registered;
what it had got by then is noted.

Undone: it leaves as ``remove-broker`` says, for good; partitions go back to where they were. Its id is not given
again, its trace stays in the record. If it cannot leave in ``UNDO_PATIENCE_S`` it stays a member like any other, and
the fault is not seen to be healed.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta

from nemesis.faults.base import (
    RESTART_S,
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    SelectorUnresolved,
)
from nemesis.faults.departure import depart, described, named, trace_of
from nemesis.faults.moves import Moves
from nemesis.faults.remove_broker import MAX_PATIENCE_S, UNDO_PATIENCE_S
from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.processes import BrokerMembership, Processes
from nemesis.interfaces.unsupported import supported
from nemesis.support.node_names import id_of

MAX_PARTITIONS = 1_000


class AddBroker(Fault, frozen=True, kw_only=True):
    """Start one more broker and move replicas of so many partitions onto it; it leaves after ``duration_s``."""

    name: ClassVar[str] = "add-broker"
    summary: ClassVar[str] = (
        "a new broker joins on an empty disk and gets replicas; it leaves after `duration_s`"
    )
    effect: ClassVar[str] = "the broker is registered; the partitions where it is in sync are noted"
    heal: ClassVar[str] = "the broker is not registered, and no partition names it"
    needs: ClassVar[frozenset[type]] = frozenset({Processes, BrokerMembership})
    recovery_s: ClassVar[float] = 2 * RESTART_S

    partitions: Annotated[
        int,
        Meta(
            ge=0, le=MAX_PARTITIONS, description="partitions of which the new broker gets a replica"
        ),
    ] = 2
    patience_s: Annotated[
        float, Meta(gt=0, le=MAX_PATIENCE_S, description="seconds for replicas to be moved")
    ] = 20.0

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        duration_s = round(RESTART_S + durations.draw(rng), 2)  # it must start before it is there
        return cls(duration_s=duration_s, partitions=rng.randint(1, 4))

    async def aim(self, context: FaultContext, rng: Random) -> AddBrokerStrike:
        node = supported(context.processes.membership).next_broker
        if node is None:
            raise SelectorUnresolved("there is no address left for another broker")
        return AddBrokerStrike(context, node, rng, self)


class AddBrokerStrike:
    """A broker that is about to join."""

    def __init__(self, context: FaultContext, node: str, rng: Random, fault: AddBroker) -> None:
        self._context = context
        self._moves = Moves(context, rng)
        self._fault = fault
        self._exited: NodeExited | None = None
        self._stays: dict[str, Any] = {}
        self.victims = [node]
        self.intent: dict[str, Any] = {"start": node, "partitions": fault.partitions}

    async def apply(self) -> Measured:
        [node], context = self.victims, self._context
        deadline = asyncio.get_running_loop().time() + self._fault.patience_s
        try:
            started = await supported(context.processes.membership).add_broker(node)
        except NodeExited as error:
            self._exited = error
            return Measured(is_effective=False, detail={"exited": str(error)})
        registered = await context.zookeeper_view.registration(
            id_of(node), timeout_s=max(0.0, deadline - asyncio.get_running_loop().time())
        )
        if registered is None:
            return Measured(is_effective=False, detail={"started": started, "registered": False})
        missing = await self._moves.onto(
            id_of(node), count=self._fault.partitions, deadline=deadline
        )
        states = (await context.view.snapshot()).partitions
        in_sync = [tp for tp, state in sorted(states.items()) if id_of(node) in state.isr]
        return Measured(
            is_effective=True,
            detail={
                "started": started,
                "broker_epoch": registered.czxid,
                "in_sync": named(in_sync),
                **described(not_moved=named(missing)),
            },
        )

    async def undo(self) -> None:
        if self._exited is not None:
            raise self._exited
        [node] = self.victims
        if not self._context.is_alive(node):
            raise NodeExited(f"{node} has exited by itself")
        left = await depart(self._context, node, self._moves, patience_s=UNDO_PATIENCE_S)
        if left.is_effective:
            supported(self._context.processes.membership).retire(node)
        else:
            self._stays = left.detail

    async def verify(self) -> Measured:
        trace = trace_of(await self._context.view.snapshot(), self.victims[0])
        return Measured(is_effective=trace is None, detail=described(stays=self._stays, seen=trace))
