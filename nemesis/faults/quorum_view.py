"""The view of a cluster with KRaft: what its controllers and brokers answer, past every link rule.

The controller is the one that describes the quorum (DescribeQuorum) as its own, in the highest epoch: one that is cut
off may believe for a while that it is still active. Registrations and partitions are those that the broker on the
active controller's node answers (Metadata), because that broker applies the log which its controller writes. Where
controllers are nodes of their own, they are those of the broker that has fetched most of that log. While it
does not answer, or no controller is active, they are those of the broker that knows the highest leader epochs. A
registered broker is one that is not fenced.

Limits: a view is a snapshot of several reads. Brokers do not report their broker epochs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import Final, TypeVar

from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.faults.direct_client import direct_client
from nemesis.interfaces.cluster import Cluster, voters_of
from nemesis.support.errors import HarnessError
from nemesis.support.node_names import CONTROLLER, id_of, is_controller, node_of
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.cluster_metadata import ClusterMetadata
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.kafka.quorum import QuorumLeader, quorum_leader, removed_replicas

REQUEST_TIMEOUT_S: Final = 1.0
PATIENCE_S: Final = 20.0
"""Until the harness gives up when no broker answers, as long as its connection to ZooKeeper does."""
POLL_INTERVAL_S: Final = 0.1
WATCH_INTERVAL_S: Final = 0.03
CLIENT_ID: Final = "nemesis-quorum"
AUTHORITY: Final = "the active controller"

TopicPartition = tuple[str, int]
_T = TypeVar("_T")


class QuorumView:
    """Implements ``ClusterView`` by asking the nodes of a cluster."""

    def __init__(
        self, cluster: Cluster, rng: Random, is_alive: Callable[[str], bool] = lambda _: True
    ) -> None:
        """Every broker of the cluster is a controller, too, unless controllers are nodes of their own.

        ``is_alive``: whether a node's process exists; one that is dead is not asked. The address of a dead
        container refuses nothing: each snapshot would wait for it, and miss the loss of a broker.
        """
        self._cluster = cluster
        self._rng = rng
        self._is_alive = is_alive

    async def snapshot(self) -> ClusterSnapshot:
        """Ask controllers and brokers; again and again while no broker answers."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while (snapshot := await self._look()) is None:
            if asyncio.get_running_loop().time() > deadline:
                raise HarnessError(f"no broker answers the harness for {PATIENCE_S:.0f} s")
            await asyncio.sleep(POLL_INTERVAL_S)
        return snapshot

    async def controller(self) -> tuple[Ephemeral | None, int]:
        now = await self.controller_now()
        return now, 0 if now is None else now.czxid

    async def controller_now(self) -> Ephemeral | None:
        leader = await self._leader()
        return None if leader is None else Ephemeral(leader.node, 0, leader.epoch)

    async def broker_loss(self, *, timeout_s: float) -> bool:
        """Wait until a broker is fenced that is not now, or is unfenced meanwhile."""
        registered = set((await self.snapshot()).brokers)

        async def is_one_missing() -> bool | None:
            nonlocal registered
            before, registered = registered, set((await self.snapshot()).brokers)
            return True if before - registered else None

        return await _until(is_one_missing, timeout_s) is not None

    async def next_controller(self, *, timeout_s: float) -> int | None:
        before = await self._leader()

        async def is_another_elected() -> int | None:
            now = await self._leader()
            is_new = now is not None and (before is None or now.epoch > before.epoch)
            return now.node if now is not None and is_new else None

        return await _until(is_another_elected, timeout_s)

    async def _look(self) -> ClusterSnapshot | None:
        """Return what is known, None when too few answer: no broker, or not the controller that is active."""
        answers = asyncio.gather(*(self._metadata(node) for node in self._cluster.brokers))
        leader = await self._leader()
        known = {n: m for n, m in zip(self._cluster.brokers, await answers, strict=True) if m}
        moving: Mapping[TopicPartition, tuple[int, ...]] = {}
        if leader is not None:
            asked = await self._ask_controller(node_of(leader.node), _moves)
            if asked is None:
                return None
            moving = asked
        if not known:
            return None
        return snapshot_of(leader, freshest(leader, known), moving)

    async def claims(self) -> list[QuorumLeader]:
        """Ask all voters; return what those answer that hold themselves for active."""
        answers = await asyncio.gather(
            *(self._ask_controller(node, _claim) for node in voters_of(self._cluster))
        )
        return [claim for claim in answers if claim is not None]

    async def _leader(self) -> QuorumLeader | None:
        """Return the active controller; None when no node claims to be it."""
        return newest(await self.claims())

    async def _metadata(self, node: str) -> ClusterMetadata | None:
        return await self._ask(node, node, _metadata)

    async def _ask_controller(
        self, node: str, question: Callable[[KafkaClient, tuple[str, int]], Awaitable[_T]]
    ) -> _T | None:
        """Return the answer of a voter, asked as a controller."""
        listener = node if is_controller(node) else f"{CONTROLLER}{id_of(node)}"
        return await self._ask(listener, node, question)

    async def _ask(
        self,
        listener: str,
        node: str,
        question: Callable[[KafkaClient, tuple[str, int]], Awaitable[_T]],
    ) -> _T | None:
        """Return the answer of a node at one of its listeners; None when it does not answer, or refuses."""
        if not self._is_alive(node):
            return None
        with direct_client(
            self._cluster, node, client_id=CLIENT_ID, rng=self._rng, listener=listener
        ) as (client, server):
            try:
                return await question(client, server)
            except KafkaError:
                return None


def newest(claims: Iterable[QuorumLeader]) -> QuorumLeader | None:
    """Return the claim of the highest epoch; None when no controller claims to be active."""
    return max(claims, key=lambda claim: claim.epoch, default=None)


def freshest(leader: QuorumLeader | None, known: Mapping[str, ClusterMetadata]) -> ClusterMetadata:
    """Return the metadata of the active controller's own broker.

    Without it: those of the broker that has fetched most of the metadata log, and of several those with the highest
    leader epochs.
    """
    own = None if leader is None else known.get(node_of(leader.node))
    if own is not None:
        return own
    observed = {} if leader is None else leader.observed
    freshness = {node: (observed.get(id_of(node), -1), _epochs(of)) for node, of in known.items()}
    return known[max(freshness, key=lambda node: freshness[node])]


def snapshot_of(
    leader: QuorumLeader | None,
    metadata: ClusterMetadata,
    moving: Mapping[TopicPartition, tuple[int, ...]],
) -> ClusterSnapshot:
    """Return what the answers say. ``moving``: partitions in reassignment, and their replicas that are removed."""
    return ClusterSnapshot(
        controller=None if leader is None else Ephemeral(leader.node, 0, leader.epoch),
        controller_epoch=0 if leader is None else leader.epoch,
        brokers={broker: Ephemeral(broker, 0, 0) for broker in sorted(metadata.brokers)},
        partitions={
            (topic, partition): PartitionState(
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                replicas=state.replicas,
                topic_id=topic_metadata.topic_id,
                is_moving=(topic, partition) in moving,
                removing=moving.get((topic, partition), ()),
            )
            for topic, topic_metadata in metadata.topics.items()
            for partition, state in topic_metadata.partitions.items()
        },
        authority=AUTHORITY,
        do_brokers_name_it=False,
    )


def _epochs(metadata: ClusterMetadata) -> int:
    return sum(
        state.leader_epoch
        for topic in metadata.topics.values()
        for state in topic.partitions.values()
    )


async def _claim(client: KafkaClient, server: tuple[str, int]) -> QuorumLeader:
    return await quorum_leader(client, server, timeout_s=REQUEST_TIMEOUT_S)


async def _moves(
    client: KafkaClient, server: tuple[str, int]
) -> dict[TopicPartition, tuple[int, ...]]:
    return await removed_replicas(client, server, timeout_s=REQUEST_TIMEOUT_S)


async def _metadata(client: KafkaClient, _server: tuple[str, int]) -> ClusterMetadata | None:
    answered = await client.refresh_metadata(timeout_s=REQUEST_TIMEOUT_S)
    return client.metadata if answered else None


async def _until(look: Callable[[], Awaitable[_T | None]], timeout_s: float) -> _T | None:
    """Look until there is something to see; None when it was not there in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while (answer := await look()) is None:
        if loop.time() > deadline:
            return None
        await asyncio.sleep(WATCH_INTERVAL_S)
    return answer
