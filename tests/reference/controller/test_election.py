"""Elections: the order of the assignment decides, and every new state has the next leader epoch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.reference.controller import election
from nemesis.reference.model import LeaderAndIsr, LeaderRecoveryState

CURRENT = LeaderAndIsr(leader=1, leader_epoch=5, isr=(1, 2, 3), partition_epoch=8)


def elect(
    live: set[int], *, unclean: bool = False, recovery: bool = True
) -> election.ElectionResult:
    return election.offline_partition_leader_election(
        (3, 2, 1, 4),
        CURRENT,
        live.__contains__,
        unclean_allowed=unclean,
        is_leader_recovery_supported=recovery,
    )


def test_the_first_live_replica_of_the_isr_leads() -> None:
    result = elect({2, 3, 4})
    assert result.leader_and_isr == LeaderAndIsr(3, 6, (2, 3), partition_epoch=8)
    assert result.recipients == (3, 2, 4)
    assert not result.unclean


def test_a_live_replica_outside_the_isr_does_not_lead() -> None:
    assert elect({4}).leader_and_isr is None


def test_unclean_takes_the_first_live_replica_alone_and_recovering() -> None:
    result = elect({4}, unclean=True)
    assert result.leader_and_isr == LeaderAndIsr(4, 6, (4,), LeaderRecoveryState.RECOVERING, 8)
    assert result.unclean


def test_before_kafka_3_2_no_state_tells_that_its_leader_was_elected_uncleanly() -> None:
    result = elect({4}, unclean=True, recovery=False)
    assert result.leader_and_isr == LeaderAndIsr(4, 6, (4,), partition_epoch=8)
    assert result.unclean


def test_unclean_is_not_used_while_the_isr_lives() -> None:
    assert elect({1, 4}, unclean=True).leader_and_isr == LeaderAndIsr(1, 6, (1,), partition_epoch=8)


def test_nobody_alive_nobody_elected() -> None:
    assert elect(set(), unclean=True).leader_and_isr is None


def test_the_first_state_has_all_live_replicas() -> None:
    assert election.initial_leader_and_isr((3, 2, 1), {1, 2}.__contains__) == LeaderAndIsr(
        2, 0, (2, 1)
    )
    assert election.initial_leader_and_isr((3,), {1}.__contains__) is None


def test_an_offline_leader_leaves_nobody_leading() -> None:
    assert election.remove_from_isr(CURRENT, 1) == LeaderAndIsr(-1, 6, (2, 3), partition_epoch=8)
    assert election.remove_from_isr(CURRENT, 2) == LeaderAndIsr(1, 6, (1, 3), partition_epoch=8)


def test_the_last_member_stays_in_the_isr() -> None:
    alone = LeaderAndIsr(leader=1, leader_epoch=5, isr=(1,))
    assert election.remove_from_isr(alone, 1) == LeaderAndIsr(-1, 6, (1,))


@given(
    assignment=st.lists(st.integers(0, 6), min_size=1, unique=True),
    data=st.data(),
    unclean=st.booleans(),
)
def test_a_leader_is_live_assigned_and_in_its_isr(
    assignment: list[int], data: st.DataObject, unclean: bool
) -> None:
    isr = tuple(data.draw(st.lists(st.sampled_from(assignment), min_size=1, unique=True)))
    live = set(data.draw(st.lists(st.integers(0, 6))))
    current = LeaderAndIsr(leader=isr[0], leader_epoch=3, isr=isr)
    result = election.offline_partition_leader_election(
        assignment,
        current,
        live.__contains__,
        unclean_allowed=unclean,
        is_leader_recovery_supported=True,
    )
    elected = result.leader_and_isr
    if elected is None:
        assert not live.intersection(isr)
        assert not (unclean and live.intersection(assignment))
        return
    assert elected.leader in live.intersection(assignment)
    assert elected.leader in elected.isr
    assert set(elected.isr) <= live
    assert elected.leader_epoch == 4
    assert result.unclean == (elected.leader not in isr)
    if not result.unclean:
        assert elected.leader == next(r for r in assignment if r in live and r in isr)


def test_a_reassignment_elects_from_its_targets_and_keeps_the_isr() -> None:
    result = election.reassign_partition_leader_election((4, 2, 3), CURRENT, {1, 3, 4}.__contains__)
    assert result.leader_and_isr == LeaderAndIsr(3, 6, (1, 2, 3), partition_epoch=8)
    assert result.recipients == (4, 2, 3)


def test_a_reassignment_without_a_live_target_in_the_isr_elects_nobody() -> None:
    elected = election.reassign_partition_leader_election((4, 2), CURRENT, {1, 4}.__contains__)
    assert elected.leader_and_isr is None


def test_the_preferred_replica_leads_if_it_lives_in_the_isr() -> None:
    result = election.preferred_replica_leader_election((3, 1, 4), CURRENT, {1, 3}.__contains__)
    assert result.leader_and_isr == LeaderAndIsr(3, 6, (1, 2, 3), partition_epoch=8)
    assert result.recipients == (3, 1, 4)


def test_nobody_takes_the_place_of_the_preferred_replica() -> None:
    for assignment, live in (((3, 1), {1, 2}), ((4, 1), {1, 4}), ((), {1})):
        result = election.preferred_replica_leader_election(assignment, CURRENT, live.__contains__)
        assert result.leader_and_isr is None


def test_a_controlled_shutdown_moves_leader_and_isr_off_those_that_leave() -> None:
    result = election.controlled_shutdown_leader_election(
        (1, 3, 2, 4), CURRENT, {1, 2, 3}.__contains__, {1, 3}
    )
    assert result.leader_and_isr == LeaderAndIsr(2, 6, (2,), partition_epoch=8)
    assert result.recipients == (1, 3, 2)


def test_a_controlled_shutdown_of_the_last_member_elects_nobody() -> None:
    result = election.controlled_shutdown_leader_election(
        (1, 2, 3, 4), CURRENT, {1, 2, 4}.__contains__, {1, 2}
    )
    assert result.leader_and_isr is None


def test_a_no_op_changes_nothing_but_the_epoch() -> None:
    result = election.no_op_leader_election((1, 2, 4), CURRENT)
    assert result.leader_and_isr == LeaderAndIsr(1, 6, (1, 2, 3), partition_epoch=8)
    assert result.recipients == (1, 2, 4)


def sets(most: int = 6) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(0, most))


@given(
    assignment=st.lists(st.integers(0, 6), min_size=1, unique=True),
    isr=st.lists(st.integers(0, 6), min_size=1, unique=True),
    live=sets(),
    leaving=sets(),
)
def test_a_clean_election_never_leaves_the_isr(
    assignment: list[int], isr: list[int], live: frozenset[int], leaving: frozenset[int]
) -> None:
    current = LeaderAndIsr(isr[0], 3, tuple(isr))
    for result in (
        election.reassign_partition_leader_election(assignment, current, live.__contains__),
        election.preferred_replica_leader_election(assignment, current, live.__contains__),
        election.controlled_shutdown_leader_election(
            assignment, current, live.__contains__, leaving
        ),
    ):
        elected = result.leader_and_isr
        assert not result.unclean
        if elected is not None:
            assert elected.leader in live.intersection(assignment, isr)
            assert elected.leader in elected.isr
            assert set(elected.isr) <= set(isr)
            assert elected.leader_epoch == 4


@given(
    isr=st.lists(st.integers(0, 6), min_size=1, unique=True),
    live=sets(),
    leaving=sets(),
)
def test_a_controlled_shutdown_finds_a_leader_whenever_one_stays(
    isr: list[int], live: frozenset[int], leaving: frozenset[int]
) -> None:
    result = election.controlled_shutdown_leader_election(
        isr, LeaderAndIsr(isr[0], 3, tuple(isr)), live.__contains__, leaving
    )
    stays = live.intersection(isr) - leaving
    assert (result.leader_and_isr is not None) == bool(stays)
    if result.leader_and_isr is not None:
        assert not leaving.intersection(result.leader_and_isr.isr)
