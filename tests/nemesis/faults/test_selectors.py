"""Symbolic targets against a hand-written cluster."""

from __future__ import annotations

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


def choose(text: str, free: list[str] | None = None, seed: int = 0) -> list[str]:
    return selectors.choose(
        selectors.parse(text),
        free=BROKERS if free is None else free,
        snapshot=SNAPSHOT,
        total=3,
        rng=Random(seed),
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


def test_a_bystander_is_any_broker_but_the_controller() -> None:
    drawn = {tuple(choose("bystander", seed=seed)) for seed in range(40)}
    assert drawn == {(node,) for node in BROKERS} - {tuple(choose("controller"))}


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
