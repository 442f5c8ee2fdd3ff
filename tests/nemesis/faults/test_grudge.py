"""Shapes of a partition, as sets of nodes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.faults import grudge
from nemesis.faults.partition import Partition
from nemesis.interfaces.links import Link

THREE = ["broker-1", "broker-2", "broker-3"]
FIVE = [f"broker-{number}" for number in range(1, 6)]


def hears(result: grudge.Grudge, node: str, nodes: list[str]) -> set[str]:
    return set(nodes) - result.get(node, frozenset())


def test_one_node_is_alone_in_both_directions() -> None:
    result = grudge.one_node(THREE, "broker-2", Random(0))
    assert result == {
        "broker-1": {"broker-2"},
        "broker-2": {"broker-1", "broker-3"},
        "broker-3": {"broker-2"},
    }


def test_halves_put_the_victim_into_the_smaller_half() -> None:
    result = grudge.halves(FIVE, "broker-4", Random(1))
    small = hears(result, "broker-4", FIVE)
    assert "broker-4" in small
    assert len(small) == 2
    for node in set(FIVE) - small:
        assert result[node] == small


def test_a_bridge_hears_everybody_and_the_sides_hear_only_the_bridge() -> None:
    result = grudge.bridge(FIVE, "broker-3", Random(2))
    assert hears(result, "broker-3", FIVE) == set(FIVE)
    for node in set(FIVE) - {"broker-3"}:
        heard = hears(result, node, FIVE)
        assert "broker-3" in heard
        assert len(heard) == 3


@pytest.mark.parametrize("nodes", [THREE, FIVE, [f"broker-{n}" for n in range(1, 8)]])
def test_in_a_majority_ring_all_hear_a_majority_and_no_two_the_same_one(nodes: list[str]) -> None:
    result = grudge.majority_ring(nodes, nodes[0], Random(3))
    heard = [frozenset(hears(result, node, nodes)) for node in nodes]
    assert all(len(majority) == len(nodes) // 2 + 1 for majority in heard)
    assert len(set(heard)) == len(nodes)
    assert all(node in majority for node, majority in zip(nodes, heard, strict=True))


def test_links_are_directions_from_the_unheard_to_the_deaf() -> None:
    assert grudge.links(grudge.deaf("broker-1", ["broker-2"])) == {Link("broker-2", "broker-1")}
    assert grudge.links(grudge.mute("broker-1", ["broker-2"])) == {Link("broker-1", "broker-2")}


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 9),
    shape=st.sampled_from(sorted(grudge.SHAPES)),
)
def test_every_shape_is_a_function_of_its_seed_and_nobody_is_deaf_to_itself(
    seed: int, count: int, shape: str
) -> None:
    nodes = [f"broker-{number}" for number in range(1, count + 1)]
    result = grudge.SHAPES[shape](nodes, nodes[-1], Random(seed))
    assert result == grudge.SHAPES[shape](nodes, nodes[-1], Random(seed))
    assert all(node not in deaf for node, deaf in result.items())
    assert set(result) <= set(nodes)


def partition_links(fault: Partition) -> set[tuple[str, str]]:
    result = fault.grudge(
        "broker-1",
        brokers=THREE,
        zookeepers=["zookeeper-1"],
        clients=["client-1", "client-2"],
        rng=Random(0),
    )
    return {(link.source, link.target) for link in grudge.links(result)}


def test_cut_from_zookeeper_leaves_the_brokers_alone() -> None:
    links = partition_links(Partition(shape="from-zookeeper"))
    assert links == {("broker-1", "zookeeper-1"), ("zookeeper-1", "broker-1")}


def test_a_mute_partition_from_zookeeper_cuts_one_direction() -> None:
    fault = Partition(shape="from-zookeeper", direction="mute")
    assert partition_links(fault) == {("broker-1", "zookeeper-1")}


def test_cut_from_clients_cuts_every_client() -> None:
    fault = Partition(shape="from-clients", direction="deaf")
    assert partition_links(fault) == {("client-1", "broker-1"), ("client-2", "broker-1")}


def test_zookeeper_stands_on_the_larger_side() -> None:
    fault = Partition(shape="one-node", zookeeper="majority")
    assert partition_links(fault) == {
        ("broker-1", "broker-2"),
        ("broker-1", "broker-3"),
        ("broker-1", "zookeeper-1"),
        ("broker-2", "broker-1"),
        ("broker-3", "broker-1"),
        ("zookeeper-1", "broker-1"),
    }
