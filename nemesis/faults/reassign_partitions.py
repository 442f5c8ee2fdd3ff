"""``reassign-partitions``: an operator asks for other replicas through ZooKeeper, as tools before KIP-455 did.

The operator creates ``/admin/reassign_partitions`` with some partitions and the replicas that each shall have. Each
controller watches this znode and reads it when it comes into office, so the request outlives its controller. The
controller removes a partition from the znode when it has moved it or cannot, and the znode with the last partition.
A later request through the API takes a partition out, too.

Effect: the znode was created. An operator's request that is there already is not overwritten: the fault is skipped.
Undone: the znode is gone.

The history has each requested move as an operation ``reassign`` of the administrator, with the ``path`` of the znode.
It begins before the znode is created. It ends when the znode is seen to be gone: ``ok`` if ZooKeeper then shows the
requested replicas as those of the partition or of its move in progress. Otherwise it is ``info``: nothing shows whether
the move was refused, or made and then replaced. While the znode is there, the operation stays open.

A controller does not check that the target brokers are alive. So a target has registered brokers only, and none that
another fault has in its hands: a broker of ``add-broker`` leaves for good, and a move onto it would never end.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from random import Random
from typing import Annotated, Any, ClassVar, Final, Self

from msgspec import Meta

from nemesis.faults.administrator import OpenMoves, Replicas, TopicPartition
from nemesis.faults.base import DrawRange, FaultContext, Measured, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState
from nemesis.faults.departure import named
from nemesis.faults.moves import LEAST_REPLICAS
from nemesis.faults.operator import OperatorFault, controller_now
from nemesis.support.node_names import id_of, node_of

REASSIGNMENT_PATH: Final = "/admin/reassign_partitions"
MAX_PARTITIONS: Final = 1_000

Requests = Mapping[TopicPartition, tuple[PartitionState, Replicas]]
"""The partitions to be moved: the state in which each was chosen, and the replicas to ask for."""


class ReassignPartitions(OperatorFault, frozen=True, kw_only=True):
    """Ask for other replicas of this many partitions, once."""

    name: ClassVar[str] = "reassign-partitions"
    summary: ClassVar[str] = "creates `/admin/reassign_partitions` as operators do"
    effect: ClassVar[str] = "the znode was created; the requested replicas are noted"
    heal: ClassVar[str] = "a controller has removed the znode"

    partitions: Annotated[
        int, Meta(ge=1, le=MAX_PARTITIONS, description="partitions that get other replicas")
    ] = 2

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del durations
        return cls(partitions=rng.randint(1, 4))

    async def aim(self, context: FaultContext, rng: Random) -> ReassignPartitionsStrike:
        controller = await controller_now(context)
        # A broker is touched before it joins and until it has left, so each of both looks alone could miss it.
        touched = _touched(context)
        snapshot = await context.view.snapshot()
        touched |= _touched(context)
        if snapshot.is_reassignment_asked_for:
            raise SelectorUnresolved(f"{REASSIGNMENT_PATH} exists")
        requests = requested(snapshot, self.partitions, touched, rng)
        if not requests:
            raise SelectorUnresolved("no partition can get other replicas")
        return ReassignPartitionsStrike(context, node_of(controller.broker_id), requests)


class ReassignPartitionsStrike:
    """A controller that is about to be asked for moves."""

    def __init__(self, context: FaultContext, controller: str, requests: Requests) -> None:
        self._context = context
        self._requests = requests
        self._open: OpenMoves | None = None
        self.victims = [controller]
        self.intent: dict[str, Any] = {"created": REASSIGNMENT_PATH}

    async def apply(self) -> Measured:
        wanted = {tp: replicas for tp, (_, replicas) in self._requests.items()}
        self._open = self._context.administrator.open_moves(wanted, REASSIGNMENT_PATH)
        is_created = await self._context.zookeeper.create(REASSIGNMENT_PATH, encoded(wanted))
        # Without an answer the attempt is repeated, so a znode that exists can be the fault's own: the moves stay open.
        moves = dict(zip(named(list(wanted)), map(list, wanted.values()), strict=True))
        return Measured(is_effective=is_created, detail={"moves": moves, "existed": not is_created})

    async def undo(self) -> None:
        """The controller removes the znode by itself."""

    async def verify(self) -> Measured:
        is_left = await self._context.zookeeper.exists(REASSIGNMENT_PATH) is not None
        if not is_left and self._open is not None:
            # The znode was gone before this look, so no controller begins the moves after it.
            partitions = (await self._context.view.snapshot()).partitions
            self._open.end(
                [
                    tp
                    for tp, (chosen, replicas) in self._requests.items()
                    if is_made(chosen, replicas, partitions.get(tp))
                ]
            )
            self._open = None
        return Measured(is_effective=not is_left, detail={"is_left": is_left})


def _touched(context: FaultContext) -> set[int]:
    """The brokers that other faults in force have chosen."""
    return {id_of(node) for node in context.cluster.brokers if context.touched[node]}


def requested(
    snapshot: ClusterSnapshot, count: int, avoided: Collection[int], rng: Random
) -> dict[TopicPartition, tuple[PartitionState, Replicas]]:
    """Choose partitions that rest, and other replicas for each; fewer than ``count`` if no more can be moved."""
    brokers = sorted(set(snapshot.brokers).difference(avoided))
    chosen: dict[TopicPartition, tuple[PartitionState, Replicas]] = {}
    resting = [
        tp
        for tp, state in sorted(snapshot.partitions.items())
        if not state.is_moving and tp[0] not in snapshot.deletions
    ]
    for tp in rng.sample(resting, len(resting)):
        state = snapshot.partitions[tp]
        targets = [
            target
            for target in changed(state.replicas, brokers, rng)
            if set(target) <= set(brokers)
        ]
        if targets:
            chosen[tp] = state, rng.choice(targets)
        if len(chosen) == count:
            break
    return chosen


def changed(replicas: Replicas, brokers: Collection[int], rng: Random) -> list[Replicas]:
    """Return one target of each kind that is possible: another order, another broker, one more, one fewer."""
    others = [broker for broker in brokers if broker not in replicas]
    position = rng.randrange(len(replicas))
    left_out = replicas[:position] + replicas[position + 1 :]
    targets: list[Replicas] = []
    if len(replicas) > 1:
        first = rng.randrange(1, len(replicas))
        targets.append(replicas[first:] + replicas[:first])
    if others and len(replicas) >= LEAST_REPLICAS:
        targets.append((*replicas[:position], rng.choice(others), *replicas[position + 1 :]))
    if others:
        targets.append((*replicas[:position], rng.choice(others), *replicas[position:]))
    if len(left_out) >= LEAST_REPLICAS:
        targets.append(left_out)
    return [target for target in targets if len(target) >= LEAST_REPLICAS]


def is_made(chosen: PartitionState, replicas: Replicas, state: PartitionState | None) -> bool:
    """Whether the partition has the requested replicas, or moves to them. A topic of the name may be another one."""
    return state is not None and state.topic_id == chosen.topic_id and state.target == replicas


def encoded(wanted: Mapping[TopicPartition, Replicas]) -> bytes:
    """The data of the znode, in the form of Kafka's ``ReassignPartitionsZNode``."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in wanted.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions}).encode()
