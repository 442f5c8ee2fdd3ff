"""Laws of the assignors: one owner for each partition, balanced loads, and as few moves as possible."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.workloads.kafka.assignors import (
    ASSIGNORS,
    Assigned,
    Assignor,
    assign_cooperatively,
    assign_ranges,
    assign_sticky,
)
from nemesis.workloads.kafka.consumer_protocol import Subscribed, TopicPartition

TOPICS = ("t", "u", "v")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(6)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 6))
NAMES = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False) -> dict[str, Subscribed]:
    """Members that claim anything: contradictory claims, too, and partitions to which they do not subscribe."""
    subscriptions = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1).map(tuple)
    shared = draw(subscriptions)
    return {
        name: Subscribed(
            shared if equal else draw(subscriptions),
            tuple(draw(st.lists(st.sampled_from(PARTITIONS), unique=True))),
            draw(st.integers(1, 3)),
            draw(st.none() | st.just(f"i-{name}")),
        )
        for name in draw(NAMES)
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[Assigned, dict[str, Subscribed], dict[str, int]]:
    """An assignment, and the group that follows it: members have gone and come, topics have appeared or grown."""
    counts = draw(COUNTS)
    before = assign_sticky({name: Subscribed(TOPICS) for name in draw(NAMES)}, counts)
    stay = [name for name in before if draw(st.booleans())]
    names = [*stay, *(name for name in draw(NAMES) if name not in before)] or ["z"]
    members = {name: Subscribed(TOPICS, tuple(before.get(name, ())), 1) for name in names}
    grown = {topic: max(count, counts.get(topic, 0)) for topic, count in draw(COUNTS).items()}
    return before, members, counts | grown


def owner_of(assigned: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    owners = [(tp, member) for member, partitions in assigned.items() for tp in partitions]
    assert len(owners) == len(dict(owners)), "two owners"
    return dict(owners)


def assignable(members: Mapping[str, Subscribed], counts: Mapping[str, int]) -> set[TopicPartition]:
    wanted = {topic for subscribed in members.values() for topic in subscribed.topics}
    return {(topic, n) for topic, count in counts.items() if topic in wanted for n in range(count)}


def loads(assigned: Assigned) -> list[int]:
    return [len(partitions) for partitions in assigned.values()]


def claimed(members: Mapping[str, Subscribed], assigned: Assigned) -> dict[str, Subscribed]:
    """The members after the assignment: they have given up what it does not contain, and claim the rest."""
    return {
        name: subscribed._replace(owned=tuple(assigned[name]), generation=4)
        for name, subscribed in members.items()
    }


@pytest.mark.parametrize("assign", [assign_ranges, assign_sticky])
@given(groups(), COUNTS)
def test_each_partition_has_one_owner_who_subscribes_to_it(
    assign: Assignor, members: dict[str, Subscribed], counts: dict[str, int]
) -> None:
    assigned = assign(members, counts)  # type: ignore[operator]
    owners = owner_of(assigned)
    assert owners.keys() == assignable(members, counts)
    assert all(topic in members[member].topics for (topic, _), member in owners.items())
    assert assigned.keys() == members.keys()


@given(groups(equal=True), COUNTS)
def test_loads_differ_by_one_if_subscriptions_are_equal(
    members: dict[str, Subscribed], counts: dict[str, int]
) -> None:
    assert (
        max(loads(assign_sticky(members, counts))) - min(loads(assign_sticky(members, counts))) <= 1
    )


@given(groups(), COUNTS)
def test_no_partition_could_move_to_a_member_that_has_two_fewer(
    members: dict[str, Subscribed], counts: dict[str, int]
) -> None:
    assigned = assign_sticky(members, counts)
    for (topic, _), owner in owner_of(assigned).items():
        for member, subscribed in members.items():
            if topic in subscribed.topics:
                assert len(assigned[owner]) <= len(assigned[member]) + 1


@given(histories())
def test_as_few_partitions_move_between_members_that_stay_as_balance_allows(
    history: tuple[Assigned, dict[str, Subscribed], dict[str, int]],
) -> None:
    before, members, counts = history
    assigned = assign_sticky(members, counts)
    was, now = owner_of(before), owner_of(assigned)
    moved = [tp for tp, member in was.items() if member in members and now[tp] != member]
    # Members that have more than the larger share give until they have it, however many the others have.
    share, rest = divmod(len(now), len(members))
    kept = sorted((len(subscribed.owned) for subscribed in members.values()), reverse=True)
    shares = [share + (index < rest) for index in range(len(kept))]
    assert len(moved) == sum(max(0, had - has) for had, has in zip(kept, shares, strict=True))
    for tp in moved:
        assert len(assigned[was[tp]]) >= len(assigned[now[tp]]), "the move was not needed"


@given(groups(), COUNTS)
def test_what_another_member_claims_is_not_assigned_before_it_is_given_up(
    members: dict[str, Subscribed], counts: dict[str, int]
) -> None:
    assigned = assign_cooperatively(members, counts)
    for tp, member in owner_of(assigned).items():
        others = [name for name, subscribed in members.items() if tp in subscribed.owned]
        assert not others or member in others


@given(groups(), COUNTS)
def test_two_rebalances_reach_the_sticky_assignment(
    members: dict[str, Subscribed], counts: dict[str, int]
) -> None:
    first = assign_cooperatively(members, counts)
    second = assign_cooperatively(claimed(members, first), counts)
    assert owner_of(second).keys() == assignable(members, counts)
    assert second == assign_cooperatively(claimed(members, second), counts), "and stay there"


def test_of_two_claims_the_later_generation_is_right_and_equal_ones_are_not() -> None:
    counts = {"t": 2}
    late = {"a": Subscribed(("t",), (("t", 0),), 1), "b": Subscribed(("t",), (("t", 0),), 2)}
    assert assign_cooperatively(late, counts) == {"a": [("t", 1)], "b": [("t", 0)]}
    equal = {name: member._replace(generation=2) for name, member in late.items()}
    assert owner_of(assign_sticky(equal, counts)).keys() == {("t", 0), ("t", 1)}


def test_a_partition_moves_in_two_rebalances() -> None:
    counts = {"t": 2}
    members = {"a": Subscribed(("t",), (("t", 0), ("t", 1)), 1), "b": Subscribed(("t",))}
    first = assign_cooperatively(members, counts)
    assert first == {"a": [("t", 0)], "b": []}
    assert assign_cooperatively(claimed(members, first), counts) == {
        "a": [("t", 0)],
        "b": [("t", 1)],
    }


def test_a_static_member_keeps_its_range() -> None:
    """Its member id is another one each time; its instance id decides."""
    for member_id in ("a-1", "z-9"):
        members = {
            member_id: Subscribed(("t",), instance="i"),
            "m": Subscribed(("t",), instance="j"),
        }
        assert assign_ranges(members, {"t": 2})[member_id] == [("t", 0)]


def test_the_first_members_get_one_partition_more() -> None:
    members = {"b": Subscribed(("t", "u")), "a": Subscribed(("t", "u"))}
    assert assign_ranges(members, {"t": 3, "u": 1}) == {
        "a": [("t", 0), ("t", 1), ("u", 0)],
        "b": [("t", 2)],
    }


def test_names_are_kafkas() -> None:
    assert list(ASSIGNORS) == ["range", "cooperative-sticky"]
    assert [assignor.is_cooperative for assignor in ASSIGNORS.values()] == [False, True]
