"""Symbolic targets against a hand-written cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from nemesis.faults import selectors
from nemesis.faults.base import SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.support.errors import UsageError

BROKERS = ["broker-1", "broker-2", "broker-3"]
SNAPSHOT = ClusterSnapshot(
    controller=Ephemeral(2, session=7, czxid=9),
    controller_epoch=4,
    partitions={
        ("orders", 0): PartitionState(leader=1, leader_epoch=3, isr=(1, 3), replicas=(1, 2, 3)),
        ("orders", 1): PartitionState(leader=-1, leader_epoch=5, isr=(2,), replicas=(2, 3, 1)),
    },
)


def choose(
    text: str,
    free: list[str] | None = None,
    seed: int = 0,
    *,
    snapshot: ClusterSnapshot = SNAPSHOT,
    controllers: Sequence[str] = (),
) -> list[str]:
    return selectors.choose(
        selectors.parse(text),
        free=BROKERS if free is None else free,
        snapshot=snapshot,
        total=3,
        rng=Random(seed),
        controllers=controllers,
    )


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("controller", ["broker-2"]),
        ("broker-3", ["broker-3"]),
        ('leader("orders",0)', ["broker-1"]),
        ("leader", ["broker-1"]),
        ("follower('orders', 0)", ["broker-3"]),
        ("all", BROKERS),
    ],
)
def test_names_that_stand_for_certain_nodes(text: str, nodes: list[str]) -> None:
    assert choose(text) == nodes


def test_the_coordinator_of_a_group_leads_its_offsets_partition() -> None:
    """Java: "f".hashCode() is 102, "g".hashCode() is 103."""
    states = {
        ("__consumer_offsets", number): PartitionState(
            leader=leader, leader_epoch=1, isr=(leader,), replicas=(1, 2, 3)
        )
        for number, leader in enumerate((3, 1, 2, -1))
    }
    snapshot = replace(SNAPSHOT, partitions={**SNAPSHOT.partitions, **states})
    assert choose('coordinator("f")', snapshot=snapshot) == ["broker-2"]
    with pytest.raises(SelectorUnresolved, match="__consumer_offsets-3 has no leader"):
        choose("coordinator('g')", snapshot=snapshot)
    with pytest.raises(SelectorUnresolved, match="__consumer_offsets does not exist"):
        choose("coordinator('g')")
    with pytest.raises(SelectorUnresolved, match="broker-2 is dead"):
        choose("coordinator('f')", ["broker-1"], snapshot=snapshot)
    with pytest.raises(UsageError, match="allowed are"):
        selectors.check("coordinator", frozenset(BROKERS))


def test_a_controller_that_is_no_broker_is_struck_by_its_own_names_only() -> None:
    apart = ["controller-1", "controller-2", "controller-3"]
    snapshot = replace(SNAPSHOT, controller=Ephemeral(1002, session=0, czxid=5))
    assert choose("controller", snapshot=snapshot, controllers=apart) == ["controller-2"]
    assert choose("controller-3", snapshot=snapshot, controllers=apart) == ["controller-3"]
    with pytest.raises(SelectorUnresolved, match="controller-2 is dead"):
        choose("controller", snapshot=snapshot, controllers=["controller-1"])
    for text in ("one", "bystander", "minority", "majority", "all"):
        drawn = {
            node
            for seed in range(20)
            for node in choose(text, snapshot=snapshot, controllers=apart, seed=seed)
        }
        assert drawn == set(BROKERS), text


def test_voters_are_named_in_a_cluster_with_kraft_only() -> None:
    kraft = frozenset(["broker-1", "controller-1"])
    selectors.check("voters-majority", kraft)
    selectors.check("controller-1", kraft)
    with pytest.raises(UsageError, match="this cluster has broker-1, controller-1"):
        selectors.check("controller-2", kraft)
    with pytest.raises(UsageError, match="this cluster has ZooKeeper and no voters"):
        selectors.check("voters-minority", frozenset(["broker-1", "zookeeper-1"]))


def test_a_bystander_is_any_broker_but_the_controller() -> None:
    drawn = {tuple(choose("bystander", seed=seed)) for seed in range(40)}
    assert drawn == {(node,) for node in BROKERS} - {tuple(choose("controller"))}


def test_a_bystander_is_registered_if_possible() -> None:
    """A recipe waits for the loss of a broker, and a broker that has only just started cannot be lost."""
    snapshot = replace(SNAPSHOT, brokers={2: Ephemeral(2, 7, 9), 3: Ephemeral(3, 8, 11)})
    drawn = {tuple(choose("bystander", snapshot=snapshot, seed=seed)) for seed in range(40)}
    assert drawn == {("broker-3",)}


@pytest.mark.parametrize(("text", "count"), [("one", 1), ("minority", 1), ("majority", 2)])
def test_counts_are_drawn_from_the_seed(text: str, count: int) -> None:
    drawn = [choose(text, seed=seed) for seed in range(40)]
    assert all(len(nodes) == count for nodes in drawn)
    assert len({tuple(nodes) for nodes in drawn}) == 3
    assert drawn[5] == choose(text, seed=5)


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("controller", ["broker-1", "broker-3"]),
        ("broker-1", ["broker-2"]),
        ('leader("orders",1)', BROKERS),
        ('leader("orders",9)', BROKERS),
        ("majority", ["broker-1"]),
        ("one", []),
    ],
)
def test_a_name_that_stands_for_nobody_is_unresolved(text: str, free: list[str]) -> None:
    with pytest.raises(SelectorUnresolved):
        choose(text, free)


def test_no_controller_is_unresolved() -> None:
    with pytest.raises(SelectorUnresolved, match="no controller"):
        selectors.choose(
            selectors.parse("controller"),
            free=BROKERS,
            snapshot=ClusterSnapshot(),
            total=3,
            rng=Random(0),
        )


def test_an_unknown_target_names_itself_and_the_allowed_ones() -> None:
    with pytest.raises(
        UsageError, match=r"unknown selector 'boss': allowed are controller, bystander, leader,"
    ):
        selectors.check("boss", frozenset(BROKERS))


def test_a_broker_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown selector 'broker-9': this cluster has broker-1,"):
        selectors.check("broker-9", frozenset(BROKERS))
