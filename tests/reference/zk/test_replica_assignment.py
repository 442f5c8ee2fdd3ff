"""Where a partition's replicas are on the way from one set to another (KIP-455)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.zk.zk_data import ReplicaAssignment

replicas = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True).map(tuple)


@given(origin=replicas, target=replicas)
def test_a_reassignment_knows_where_it_comes_from_and_where_it_leads(
    origin: tuple[int, ...], target: tuple[int, ...]
) -> None:
    moving = ReplicaAssignment(origin).reassign_to(target)
    assert moving.target_replicas == target
    assert set(moving.origin_replicas) == set(origin)
    assert len(set(moving.replicas)) == len(moving.replicas)
    assert set(moving.adding_replicas) == set(target) - set(origin)
    assert set(moving.removing_replicas) == set(origin) - set(target)
    assert moving.is_being_reassigned == (set(origin) != set(target))


@given(origin=replicas, first=replicas, second=replicas)
def test_a_replaced_reassignment_keeps_its_origin(
    origin: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    moving = ReplicaAssignment(origin).reassign_to(first).reassign_to(second)
    assert set(moving.origin_replicas) == set(origin)
    assert moving.target_replicas == second
    cancelled = moving.reassign_to(moving.origin_replicas)
    assert not cancelled.is_being_reassigned
    assert set(cancelled.replicas) == set(origin)


@given(origin=replicas, target=replicas)
def test_removing_what_is_to_go_leaves_what_was_asked_for(
    origin: tuple[int, ...], target: tuple[int, ...]
) -> None:
    moving = ReplicaAssignment(origin).reassign_to(target)
    for replica in moving.removing_replicas:
        moving = moving.remove_replica(replica)
    assert moving.replicas == target
    assert moving.removing_replicas == ()


def test_the_example_of_kafkas_own_comment() -> None:
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 2))
    assert moving == ReplicaAssignment((3, 4, 2, 1), adding_replicas=(4,), removing_replicas=(1,))
