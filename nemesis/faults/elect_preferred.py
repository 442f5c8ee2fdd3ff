"""``elect-preferred``: an operator asks for preferred leaders through ZooKeeper, as tools before KIP-460 did.

The operator creates ``/admin/preferred_replica_election`` with the names of all partitions. Each controller watches
this znode and reads it when it comes into office, so the request outlives its controller. The controller elects the
preferred replicas that can lead, and removes the znode.

Effect: the znode was created, or was there from before. Undone: the znode is gone.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, ClassVar, Final

from nemesis.faults.base import FaultContext, Measured
from nemesis.faults.cluster_view import Ephemeral
from nemesis.faults.operator import OperatorFault, controller_now
from nemesis.support.node_names import node_of

ELECTION_PATH: Final = "/admin/preferred_replica_election"


class ElectPreferred(OperatorFault, frozen=True, kw_only=True):
    """Ask for the preferred leader of each partition, once."""

    name: ClassVar[str] = "elect-preferred"
    summary: ClassVar[str] = "creates `/admin/preferred_replica_election` as operators do"
    effect: ClassVar[str] = "the znode was created"
    heal: ClassVar[str] = "a controller has removed the znode"

    async def aim(self, context: FaultContext, rng: Random) -> ElectPreferredStrike:
        del rng
        return ElectPreferredStrike(context, await controller_now(context))


class ElectPreferredStrike:
    """A controller that is about to be asked."""

    def __init__(self, context: FaultContext, controller: Ephemeral) -> None:
        self._context = context
        self.victims = [node_of(controller.broker_id)]
        self.intent: dict[str, Any] = {"created": ELECTION_PATH}

    async def apply(self) -> Measured:
        named = sorted((await self._context.view.snapshot()).partitions)
        existed = not await self._context.zookeeper.create(ELECTION_PATH, encoded(named))
        return Measured(is_effective=True, detail={"partitions": len(named), "existed": existed})

    async def undo(self) -> None:
        """The controller removes the znode by itself."""

    async def verify(self) -> Measured:
        is_left = await self._context.zookeeper.exists(ELECTION_PATH) is not None
        return Measured(is_effective=not is_left, detail={"is_left": is_left})


def encoded(partitions: list[tuple[str, int]]) -> bytes:
    """The data of the znode, in the form of Kafka's ``PreferredReplicaElectionZNode``."""
    named = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return json.dumps({"version": 1, "partitions": named}).encode()
