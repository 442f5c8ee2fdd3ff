"""What the view of a KRaft cluster makes of the answers of controllers and brokers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import cast
from uuid import UUID

import pytest

from nemesis.faults.base import FaultContext
from nemesis.faults.cluster_view import Ephemeral, PartitionState
from nemesis.faults.quorum_view import QuorumView, freshest, newest, snapshot_of
from nemesis.interfaces.cluster import Cluster
from nemesis.interfaces.errors import FaultUnsupported
from nemesis.interfaces.links import Address
from nemesis.running.convergence_checks import wrong_controller, wrong_metadata
from nemesis.workloads.kafka.cluster_metadata import (
    ClusterMetadata,
    PartitionMetadata,
    TopicMetadata,
)
from nemesis.workloads.kafka.quorum import QuorumLeader
from tests.nemesis.faults.simulated_cluster import in_cluster

TOPIC_ID = UUID(int=7)


def metadata(leader: int, leader_epoch: int, *, controller: int = 3) -> ClusterMetadata:
    """A broker's answer about one partition with three replicas."""
    state = PartitionMetadata(leader, leader_epoch, (1, 2, 3), (leader, 3))
    return ClusterMetadata(
        brokers={1: ("127.0.0.1", 9092), 3: ("127.0.0.3", 9092)},
        controller_id=controller,
        topics={"t": TopicMetadata(TOPIC_ID, {0: state})},
    )


def test_a_deposed_controller_that_still_claims_to_be_active_is_not_the_controller() -> None:
    assert newest([QuorumLeader(1, 4), QuorumLeader(2, 7), QuorumLeader(3, 6)]) == QuorumLeader(
        2, 7
    )
    assert newest([]) is None


def test_the_metadata_are_those_of_the_active_controllers_own_broker() -> None:
    stale, fresh = metadata(1, 3), metadata(2, 9)
    known = {"broker-1": stale, "broker-2": fresh}
    assert freshest(QuorumLeader(1, 5), known) is stale
    assert freshest(QuorumLeader(3, 5), known) is fresh
    assert freshest(None, known) is fresh


def test_the_metadata_are_those_of_the_broker_that_has_fetched_most_of_a_controllers_log() -> None:
    slow, fast = metadata(1, 9), metadata(2, 3)
    known = {"broker-1": slow, "broker-2": fast}
    assert freshest(QuorumLeader(1002, 5, observed={1: 70, 2: 80}), known) is fast
    assert freshest(QuorumLeader(1002, 5, observed={1: 80, 2: 80}), known) is slow
    assert freshest(QuorumLeader(1002, 5), known) is slow


def test_a_snapshot_has_the_controller_the_unfenced_brokers_and_the_partitions() -> None:
    snapshot = snapshot_of(QuorumLeader(3, 8), metadata(1, 4), {("t", 0): (2,)})
    assert snapshot.controller == Ephemeral(3, 0, 8)
    assert snapshot.controller_epoch == 8
    assert sorted(snapshot.brokers) == [1, 3]
    assert snapshot.partitions["t", 0] == PartitionState(
        leader=1,
        leader_epoch=4,
        isr=(1, 3),
        replicas=(1, 2, 3),
        topic_id=TOPIC_ID,
        is_moving=True,
        removing=(2,),
    )
    without = snapshot_of(None, metadata(1, 4), {})
    assert without.controller is None
    assert not without.partitions["t", 0].is_moving


def test_brokers_of_a_quorum_may_name_any_broker_as_controller_and_nothing_else_wrongly() -> None:
    snapshot = snapshot_of(QuorumLeader(3, 8), metadata(1, 4), {})
    assert wrong_controller(snapshot) == []
    assert wrong_metadata(snapshot, {1: metadata(1, 4, controller=1)}) == []
    [wrong] = wrong_metadata(snapshot, {1: metadata(1, 3)})
    assert "leader epoch 3" in wrong.error
    assert "the active controller 1, 4" in wrong.error


def test_a_controller_that_is_not_a_broker_is_not_registered_and_a_broker_has_to_be() -> None:
    apart = snapshot_of(QuorumLeader(1002, 8), metadata(1, 4), {})
    assert wrong_controller(apart) == []
    [wrong] = wrong_controller(snapshot_of(QuorumLeader(2, 8), metadata(1, 4), {}))
    assert wrong.error == "the controller 2 is not registered"


class Unreachable:
    """A cluster of which every address is one too many."""

    brokers = ("broker-1", "broker-2")

    def direct_address(self, node: str) -> Address:
        raise AssertionError(f"{node} is asked")


def test_a_node_that_is_dead_is_not_asked() -> None:
    cluster = cast("Cluster", Unreachable())
    dead = QuorumView(cluster, Random(1), lambda _: False)
    assert asyncio.run(dead.controller_now()) is None
    living = QuorumView(cluster, Random(1), lambda node: node == "broker-2")
    with pytest.raises(AssertionError, match="controller-2 is asked"):
        asyncio.run(living.controller_now())


def test_a_fault_that_needs_zookeeper_is_refused_by_a_view_of_a_quorum() -> None:
    async def scene(context: FaultContext) -> None:
        context.view = QuorumView(context.cluster, Random(1))
        with pytest.raises(FaultUnsupported, match="the cluster has no ZooKeeper"):
            _ = context.zookeeper

    in_cluster(scene)
