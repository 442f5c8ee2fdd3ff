"""Replicas that a fault has moved: away from a broker, onto one, and back to where they were.

An administrator asks, looks in ZooKeeper what came of it, and asks again, because requests get lost, controllers change
and others move the same partitions. Each kind of move is a pure function from what is seen to what is to be asked for;
it is over when nothing is left that it wants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from uuid import UUID

from nemesis.faults.administrator import Replicas, TopicPartition
from nemesis.faults.base import FaultContext
from nemesis.faults.cluster_view import ClusterSnapshot, PartitionState

POLL_INTERVAL_S = 0.2
LEAST_REPLICAS = 2
"""A partition is not left with fewer for the sake of a fault: one more fault would be the end of it."""

Wanted = Mapping[TopicPartition, Replicas | None]
"""What is not as it should be: the replicas to ask for, or None where nothing can be done but wait."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A partition that we had moved: from where, and what we asked for last."""

    topic_id: UUID | None
    home: Replicas
    asked: Replicas


class Moves:
    """The moves of one fault. Every coroutine raises ``HarnessError`` when ZooKeeper does not answer the harness."""

    def __init__(self, context: FaultContext, rng: Random) -> None:
        self._context = context
        self._rng = rng
        self._moved: dict[TopicPartition, Moved] = {}

    async def away_from(self, broker: int, *, deadline: float) -> list[TopicPartition]:
        """Move the replicas away that it has now; return partitions that still have one at the deadline, a loop time.

        What it is given meanwhile stays: under a workload that creates topics there would always be some.
        """
        begun = await self._context.view.snapshot()

        def wanted(observed: ClusterSnapshot) -> Wanted:
            left = leaving(observed, broker, self._moved, self._rng)
            return {
                tp: replicas for tp, replicas in left.items() if had(begun, broker, tp, observed)
            }

        return await self._until_nothing(wanted, deadline)

    async def onto(self, broker: int, *, count: int, deadline: float) -> list[TopicPartition]:
        """Give it one replica of each of ``count`` partitions; return those that it had not got by the deadline."""
        snapshot = await self._context.view.snapshot()
        chosen = coming(snapshot, broker, count, self._rng)
        return await self._until_nothing(lambda observed: pending(observed, chosen), deadline)

    async def back(self, *, deadline: float) -> list[TopicPartition]:
        """Bring the replicas back to where they were; return those that were not there by the deadline."""
        return await self._until_nothing(self.astray, deadline)

    def astray(self, snapshot: ClusterSnapshot) -> Wanted:
        """Return what is still to be brought back. What others have moved since, or deleted, is theirs."""
        return returning(snapshot, self._moved)

    async def _until_nothing(
        self, wanted: Callable[[ClusterSnapshot], Wanted], deadline: float
    ) -> list[TopicPartition]:
        loop = asyncio.get_running_loop()
        while True:
            snapshot = await self._context.view.snapshot()
            left = wanted(snapshot)
            if not left or loop.time() > deadline:
                return sorted(left)
            requests = {tp: replicas for tp, replicas in left.items() if replicas is not None}
            if requests:
                self._remember(snapshot, requests)
                await self._context.administrator.reassign(requests, self._rng, deadline=deadline)
            await asyncio.sleep(POLL_INTERVAL_S)

    def _remember(
        self, snapshot: ClusterSnapshot, requests: Mapping[TopicPartition, Replicas]
    ) -> None:
        for tp, replicas in requests.items():
            state, known = snapshot.partitions[tp], self._moved.get(tp)
            is_same = known is not None and known.topic_id == state.topic_id
            home = known.home if known is not None and is_same else state.target
            self._moved[tp] = Moved(state.topic_id, home, replicas)


def had(begun: ClusterSnapshot, broker: int, tp: TopicPartition, now: ClusterSnapshot) -> bool:
    """Return whether a broker had, or was about to have, a replica of this partition when a move began."""
    if tp in begun.unassigned:
        return True
    state, observed = begun.partitions.get(tp), now.partitions.get(tp)
    if state is None or broker not in state.replicas:
        return False
    return observed is None or observed.topic_id == state.topic_id


def leaving(
    snapshot: ClusterSnapshot,
    broker: int,
    moved: Mapping[TopicPartition, Moved],
    rng: Random,
) -> Wanted:
    """Every partition with a replica on the broker. One whose replicas cannot be told yet may have one, too."""
    live = sorted(set(snapshot.brokers) - {broker})
    wanted: dict[TopicPartition, Replicas | None] = dict.fromkeys(snapshot.unassigned)
    for tp, state in sorted(snapshot.partitions.items()):
        if broker in state.replicas:
            is_waiting = broker not in state.target or tp[0] in snapshot.deletions
            known = moved.get(tp)
            home = () if known is None or known.topic_id != state.topic_id else known.home
            wanted[tp] = None if is_waiting else _without(state.target, broker, live, home, rng)
    return wanted


def _without(
    replicas: Replicas, broker: int, live: Collection[int], home: Replicas, rng: Random
) -> Replicas | None:
    """Home, if that can be; else another broker in its place; else one replica fewer."""
    if home and set(home) <= set(live):
        return home
    others = [broker for broker in live if broker not in replicas]
    if others:
        other = rng.choice(others)
        return tuple(other if replica == broker else replica for replica in replicas)
    rest = tuple(replica for replica in replicas if replica != broker)
    return rest if len(rest) >= LEAST_REPLICAS else None


def coming(
    snapshot: ClusterSnapshot, broker: int, count: int, rng: Random
) -> dict[TopicPartition, tuple[PartitionState, Replicas]]:
    """Choose partitions that rest, and in each a replica in whose place the broker comes."""
    resting = [
        tp
        for tp, state in sorted(snapshot.partitions.items())
        if not state.is_moving and tp[0] not in snapshot.deletions and broker not in state.replicas
    ]
    chosen: dict[TopicPartition, tuple[PartitionState, Replicas]] = {}
    for tp in rng.sample(resting, min(count, len(resting))):
        state = snapshot.partitions[tp]
        left_out = rng.choice(state.replicas)
        chosen[tp] = (
            state,
            tuple(broker if replica == left_out else replica for replica in state.replicas),
        )
    return chosen


def pending(
    snapshot: ClusterSnapshot,
    chosen: Mapping[TopicPartition, tuple[PartitionState, Replicas]],
) -> Wanted:
    """What was chosen and is not there yet. Where others have moved the partition meanwhile, theirs stands."""
    wanted: dict[TopicPartition, Replicas | None] = {}
    for tp, (before, replicas) in chosen.items():
        state = snapshot.partitions.get(tp)
        if state is None or state.topic_id != before.topic_id or tp[0] in snapshot.deletions:
            continue
        if state.target == before.replicas:
            wanted[tp] = replicas
        elif state.target == replicas and state.is_moving:
            wanted[tp] = None
    return wanted


def returning(snapshot: ClusterSnapshot, moved: Mapping[TopicPartition, Moved]) -> Wanted:
    """What we had moved and nobody else has since."""
    wanted: dict[TopicPartition, Replicas | None] = {}
    for tp, known in moved.items():
        state = snapshot.partitions.get(tp)
        if state is None or state.topic_id != known.topic_id or tp[0] in snapshot.deletions:
            continue
        if state.target == known.asked != known.home:
            wanted[tp] = known.home
        elif state.target == known.home and state.is_moving:
            wanted[tp] = None
    return wanted
