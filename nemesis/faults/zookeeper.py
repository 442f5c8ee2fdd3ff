"""``kill-zookeeper``, ``pause-zookeeper``, ``partition-zookeeper``: members of the ensemble, one by one.

What the other faults cannot reach: elections in ZooKeeper, followers that lag, sessions that move to another member.
Carried out as the faults of brokers of the same kind, but the proof of the heal asks more: every member that was struck
serves clients again, under the present leader. With it the history is told how many sessions have moved meanwhile.

Whom they strike, and why ZooKeeper keeps its quorum: see ``members``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from msgspec import Meta

from nemesis.faults import grudge, members
from nemesis.faults.base import (
    RESTART_S,
    DrawRange,
    Fault,
    FaultContext,
    Measured,
    Selector,
    Strike,
    selector_field,
)
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.grudge import Direction
from nemesis.faults.kill import KillStrike
from nemesis.faults.partition import PartitionStrike
from nemesis.faults.pause import PauseStrike
from nemesis.interfaces.ensemble import EnsembleMembers, ZooKeeperMember
from nemesis.interfaces.network import Network
from nemesis.interfaces.processes import Processes
from nemesis.support.errors import UsageError
from nemesis.support.node_names import node_of

MembersShape = Literal["from-members", "from-brokers", "from-one-broker", "from-all"]
MEMBERS_SHAPES: tuple[MembersShape, ...] = get_args(MembersShape)


class KillZookeeper(Fault, frozen=True, kw_only=True):
    """Kill members and start them again on their data after ``duration_s``."""

    name: ClassVar[str] = "kill-zookeeper"
    summary: ClassVar[str] = (
        "kills members of the ZooKeeper ensemble (SIGKILL); they start again on their data after `duration_s`"
    )
    effect: ClassVar[str] = "the process is gone"
    heal: ClassVar[str] = "the member serves clients again, under the present leader"
    needs: ClassVar[frozenset[type]] = frozenset({Processes, EnsembleMembers})
    recovery_s: ClassVar[float] = RESTART_S

    selector: Selector = selector_field("leader")

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        selector = rng.choice(["leader", "leader", "follower", "minority", members.MAJORITY])
        return cls(selector=selector, duration_s=_duration_s(rng, durations, selector))

    def check(self, nodes: frozenset[str]) -> None:
        members.check(self.selector, nodes, duration_s=self.duration_s)

    async def aim(self, context: FaultContext, rng: Random) -> MemberStrike:
        victims = await members.resolve(self.selector, context, rng)
        return MemberStrike(context, victims, KillStrike(context, sorted(victims)))


class PauseZookeeper(KillZookeeper, frozen=True, kw_only=True):
    """Stop members for ``duration_s``."""

    name: ClassVar[str] = "pause-zookeeper"
    summary: ClassVar[str] = (
        "stops members of the ZooKeeper ensemble (SIGSTOP or the freezer); they run again after `duration_s`"
    )
    effect: ClassVar[str] = "the kernel reports that the process is stopped"
    heal: ClassVar[str] = (
        "the process runs, and the member serves clients again, under the present leader"
    )

    async def aim(self, context: FaultContext, rng: Random) -> MemberStrike:
        victims = await members.resolve(self.selector, context, rng)
        return MemberStrike(context, victims, PauseStrike(context, sorted(victims)))


class PartitionZookeeper(Fault, frozen=True, kw_only=True):
    """Hold the bytes between one member and others for ``duration_s``. ``direction`` is seen from the member.

    ``from-members`` leaves its clients with a member that falls behind and sends them away; ``from-brokers`` makes them
    move; ``from-one-broker`` makes one of them move; ``from-all`` is both of the first two.
    """

    name: ClassVar[str] = "partition-zookeeper"
    summary: ClassVar[str] = "holds the bytes between a member of the ZooKeeper ensemble and others"
    effect: ClassVar[str] = "probes across the cut crossed before, and none crosses now"
    heal: ClassVar[str] = (
        "the same probes cross, and the member serves clients again, under the present leader"
    )
    needs: ClassVar[frozenset[type]] = frozenset({Network, EnsembleMembers})

    shape: Annotated[MembersShape, Meta(description="the [shape](#shapes-of-a-partition)")]
    selector: Selector = selector_field("leader")
    direction: Annotated[Direction, Meta(description="what the victim loses")] = "both"

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        return cls(
            shape=rng.choice(MEMBERS_SHAPES),
            selector=rng.choice(["leader", "follower", "one"]),
            direction=rng.choice(["both", "both", "deaf", "mute"]),
            duration_s=durations.draw(rng),
        )

    def check(self, nodes: frozenset[str]) -> None:
        members.check(self.selector, nodes, duration_s=self.duration_s)
        if self.selector in ("minority", members.MAJORITY):
            raise UsageError(f"{self.name} strikes one member, not a {self.selector}")

    async def aim(self, context: FaultContext, rng: Random) -> MemberStrike:
        snapshot = await context.view.snapshot()
        victims = await members.resolve(self.selector, context, rng)
        ((victim, member),) = victims.items()
        others = self._others(victim, member, snapshot, context, rng)
        chosen_grudge = grudge.towards(others, victim, self.direction)
        strike = PartitionStrike.aimed(self.shape, context, victim, chosen_grudge)
        return MemberStrike(context, victims, strike)

    def _others(
        self,
        victim: str,
        member: ZooKeeperMember,
        snapshot: ClusterSnapshot,
        context: FaultContext,
        rng: Random,
    ) -> list[str]:
        """From whom the member is cut; of brokers one that is connected to it, if there is any."""
        brokers = context.cluster.brokers
        peers = [node for node in context.cluster.zookeepers if node != victim]
        if self.shape == "from-members":
            return peers
        if self.shape == "from-brokers":
            return brokers
        if self.shape == "from-all":
            return brokers + peers
        connected = [
            node_of(broker.broker_id)
            for broker in snapshot.brokers.values()
            if broker.session in member.sessions
        ]
        return [rng.choice(sorted(connected) or brokers)]


class MemberStrike:
    """A strike on members of the ensemble, carried out by another one; sees what became of roles and sessions."""

    def __init__(
        self, context: FaultContext, victims: Mapping[str, ZooKeeperMember], strike: Strike
    ) -> None:
        self._context = context
        self._strike = strike
        self._before: Mapping[str, ZooKeeperMember] = {}
        self.victims = strike.victims
        self.intent: dict[str, Any] = strike.intent | {
            "modes": {node: member.mode for node, member in victims.items()}
        }

    async def apply(self) -> Measured:
        self._before = await self._context.members()
        return await self._strike.apply()

    async def undo(self) -> None:
        await self._strike.undo()

    async def verify(self) -> Measured:
        undone = await self._strike.verify()
        now = await self._context.members()
        epoch = max((member.epoch for member in now.values()), default=0)
        is_back = all(node in now and now[node].epoch == epoch for node in self.victims)
        return replace(
            undone,
            is_effective=undone.is_effective and is_back,
            detail=undone.detail
            | {
                "modes": {node: now[node].mode for node in self.victims if node in now},
                "moved_sessions": moved_sessions(self._before, now),
            },
        )


def moved_sessions(
    before: Mapping[str, ZooKeeperMember], now: Mapping[str, ZooKeeperMember]
) -> int:
    """Return how many sessions are at another member than before."""
    former = {session: node for node, member in before.items() for session in member.sessions}
    return sum(
        former.get(session, node) != node
        for node, member in now.items()
        for session in member.sessions
    )


def _duration_s(rng: Random, durations: DrawRange, selector: str) -> float:
    drawn = durations.draw(rng)
    return min(drawn, members.MAX_OUTAGE_S) if selector == members.MAJORITY else drawn
