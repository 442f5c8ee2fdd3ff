"""Replicas on racks: the example of kafka.admin.AdminUtils, and what holds for any racks."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.server.rack_aware_assignment import (
    assign_added_partitions,
    assign_replicas_to_brokers,
    rack_alternated,
)
from tests.reference.server.fixed_random import FixedRandom

EXAMPLE = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_neighbours_are_of_different_racks() -> None:
    assert rack_alternated(EXAMPLE) == (0, 3, 1, 5, 4, 2)


def test_a_rack_with_more_brokers_ends_the_round() -> None:
    assert rack_alternated({1: "a", 2: "b", 3: "a", 4: "a"}) == (1, 2, 3, 4)


def test_the_example_of_admin_utils() -> None:
    assignment = assign_replicas_to_brokers(EXAMPLE, 7, 3, FixedRandom())
    assert [a.replicas for a in assignment.values()] == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),  # Not the same as for partition 0.
    ]


@given(
    racks=st.dictionaries(st.integers(0, 20), st.sampled_from("abc"), min_size=1, max_size=7),
    partitions=st.integers(1, 20),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_no_rack_has_two_while_another_has_none(
    racks: dict[int, str], partitions: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    assignment = assign_replicas_to_brokers(racks, partitions, factor, Random(seed))
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas.replicas)) == len(replicas.replicas) == factor
        used = {racks[broker] for broker in replicas.replicas}
        assert len(used) == min(factor, len(set(racks.values())))
    leaders = Counter(a.replicas[0] for a in assignment.values())
    counts = [leaders[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1


@given(
    racks=st.dictionaries(st.integers(0, 20), st.sampled_from("abc"), min_size=1, max_size=7),
    data=st.data(),
)
def test_added_partitions_are_spread_over_racks_too(
    racks: dict[int, str], data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    existing = assign_replicas_to_brokers(racks, 2, factor, FixedRandom())
    added = assign_added_partitions(racks, existing, 6)
    assert list(added) == [2, 3, 4, 5]
    for replicas in added.values():
        assert len(set(replicas.replicas)) == len(replicas.replicas) == factor
        used = {racks[broker] for broker in replicas.replicas}
        assert len(used) == min(factor, len(set(racks.values())))


@pytest.mark.parametrize("factor", [0, 7])
def test_a_factor_that_does_not_fit_is_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"{factor} replicas on 6 brokers"):
        assign_replicas_to_brokers(EXAMPLE, 1, factor, Random(0))
