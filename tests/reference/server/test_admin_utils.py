"""Replica assignment and topic names."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.server.admin_utils import assign_replicas_to_brokers, topic_name_problem
from tests.reference.server.fixed_random import FixedRandom


def test_the_example_of_admin_utils() -> None:
    assignment = assign_replicas_to_brokers((0, 1, 2, 3, 4), 10, 3, FixedRandom())
    assert [a.replicas for a in assignment.values()] == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


@given(
    brokers=st.lists(st.integers(0, 99), min_size=1, max_size=7, unique=True),
    partitions=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_replicas_differ_and_leaders_are_even(
    brokers: list[int], partitions: int, seed: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    assignment = assign_replicas_to_brokers(brokers, partitions, factor, Random(seed))
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas.replicas)) == len(replicas.replicas) == factor
        assert set(replicas.replicas) <= set(brokers)
    leaders = Counter(a.replicas[0] for a in assignment.values())
    counts = [leaders[broker] for broker in brokers]
    assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("factor", [0, 4])
def test_a_factor_that_does_not_fit_is_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"{factor} replicas on 3 brokers"):
        assign_replicas_to_brokers((1, 2, 3), 1, factor, Random(0))


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250, "a.b"])
def test_names_that_kafka_refuses(name: str) -> None:
    assert topic_name_problem(name, ["a_b"]) is not None


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 249, "a_b"])
def test_names_that_kafka_takes(name: str) -> None:
    assert topic_name_problem(name, ["a_b", "other"]) is None
