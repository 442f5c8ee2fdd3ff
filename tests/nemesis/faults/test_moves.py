"""What an administrator asks for when replicas move for the sake of a fault."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.faults.cluster_view import ClusterSnapshot, Ephemeral, PartitionState
from nemesis.faults.departure import REGISTERED, trace_of
from nemesis.faults.moves import Moved, coming, had, leaving, pending, returning
from nemesis.faults.rolling_restart import RestartOrder, missing_of, next_in_turn

TP = ("orders", 0)
FIRST_EPOCH, SECOND_EPOCH = UUID(int=1), UUID(int=2)


def state(
    *replicas: int,
    removing: tuple[int, ...] = (),
    isr: tuple[int, ...] = (),
    is_adding: bool = False,
) -> PartitionState:
    return PartitionState(
        leader=replicas[0],
        leader_epoch=0,
        isr=isr or replicas,
        replicas=replicas,
        topic_id=FIRST_EPOCH,
        is_moving=is_adding or bool(removing),
        removing=removing,
    )


def cluster(
    *brokers: int,
    controller: int | None = None,
    deletions: tuple[str, ...] = (),
    **partitions: PartitionState,
) -> ClusterSnapshot:
    return ClusterSnapshot(
        controller=None if controller is None else Ephemeral(controller, session=1, czxid=1),
        brokers={broker: Ephemeral(broker, session=broker, czxid=10) for broker in brokers},
        partitions={(topic, 0): partition for topic, partition in partitions.items()},
        deletions=deletions,
    )


class TestHad:
    """A departure ends, although topics are created meanwhile."""

    @pytest.mark.parametrize(
        ("begun", "now", "is_moved"),
        [
            pytest.param(
                cluster(orders=state(1, 2)), cluster(orders=state(1, 2)), True, id="it had it"
            ),
            pytest.param(cluster(orders=state(1, 2)), cluster(), True, id="it had it; it is gone"),
            pytest.param(
                cluster(orders=state(1, 3)), cluster(orders=state(1, 2)), False, id="given since"
            ),
            pytest.param(cluster(), cluster(orders=state(1, 2)), False, id="created since"),
            pytest.param(
                replace(cluster(), unassigned=(TP,)),
                cluster(orders=state(1, 2)),
                True,
                id="about to have it",
            ),
            pytest.param(
                cluster(orders=state(1, 2)),
                cluster(orders=replace(state(1, 2), topic_id=SECOND_EPOCH)),
                False,
                id="created again",
            ),
        ],
    )
    def test_only_what_it_had_is_moved(
        self, begun: ClusterSnapshot, now: ClusterSnapshot, is_moved: bool
    ) -> None:
        assert had(begun, 2, TP, now) == is_moved


class TestLeaving:
    @pytest.mark.parametrize(
        ("brokers", "partition_state", "asked"),
        [
            pytest.param((1, 2, 3, 4), state(1, 2, 3), (1, 4, 3), id="another comes in its place"),
            pytest.param((1, 2, 3), state(1, 2, 3), (1, 3), id="nobody: one replica fewer"),
            pytest.param((1, 2), state(2), (1,), id="the only one, somewhere else"),
            pytest.param((1, 2, 3), state(1, 2, removing=(2,)), None, id="it is on its way"),
        ],
    )
    def test_what_is_asked_for(
        self,
        brokers: tuple[int, ...],
        partition_state: PartitionState,
        asked: tuple[int, ...] | None,
    ) -> None:
        assert leaving(cluster(*brokers, orders=partition_state), 2, {}, Random(1)) == {TP: asked}

    def test_a_partition_is_not_left_with_a_single_replica(self) -> None:
        assert leaving(cluster(1, 2, orders=state(1, 2)), 2, {}, Random(1)) == {TP: None}

    def test_where_it_came_from_is_preferred(self) -> None:
        moved = {TP: Moved(FIRST_EPOCH, home=(3, 1), asked=(3, 5))}
        observed = cluster(1, 2, 3, 5, orders=state(3, 5))
        assert leaving(observed, 5, moved, Random(1)) == {TP: (3, 1)}
        of_another_epoch = {TP: Moved(SECOND_EPOCH, home=(3, 1), asked=(3, 5))}
        observed = cluster(2, 3, 5, orders=state(3, 5))
        assert leaving(observed, 5, of_another_epoch, Random(1)) == {TP: (3, 2)}

    def test_topics_that_are_being_deleted_and_partitions_without_state_are_waited_for(
        self,
    ) -> None:
        observed = cluster(1, 2, 3, 4, orders=state(1, 2, 3), deletions=("orders",))
        assert leaving(observed, 2, {}, Random(1)) == {TP: None}
        assert leaving(ClusterSnapshot(unassigned=(TP,)), 2, {}, Random(1)) == {TP: None}

    @given(
        brokers=st.sets(st.integers(1, 6), min_size=3),
        size=st.integers(2, 4),
        seed=st.integers(0, 2**16),
    )
    def test_nobody_is_named_twice_and_the_leaving_one_not_at_all(
        self, brokers: set[int], size: int, seed: int
    ) -> None:
        rng = Random(seed)
        replicas = tuple(rng.sample(sorted(brokers), min(size, len(brokers))))
        leaver = rng.choice(replicas)
        asked = leaving(cluster(*brokers, orders=state(*replicas)), leaver, {}, rng)[TP]
        if asked is None:
            assert len(replicas) == 2 == len(brokers)
            return
        assert leaver not in asked
        assert len(set(asked)) == len(asked)
        assert set(asked) <= brokers
        assert len(asked) == min(len(replicas), len(brokers) - 1)


class TestComing:
    SNAPSHOT = cluster(1, 2, 3, 4, orders=state(1, 2, 3), moving=state(1, 2, 3, removing=(1,)))

    def test_partitions_that_rest_get_it_in_place_of_one_replica(self) -> None:
        chosen = coming(self.SNAPSHOT, 4, 5, Random(1))
        [(before, replicas)] = chosen.values()
        assert chosen.keys() == {TP}
        assert len(replicas) == 3
        assert set(replicas) - set(before.replicas) == {4}
        assert coming(self.SNAPSHOT, 4, 0, Random(1)) == {}

    def test_it_is_over_when_it_is_there_or_somebody_else_has_moved_the_partition(self) -> None:
        chosen = {TP: (state(1, 2, 3), (1, 4, 3))}
        assert pending(cluster(orders=state(1, 2, 3)), chosen) == {TP: (1, 4, 3)}
        assert pending(cluster(orders=state(1, 4, 3, 2, removing=(2,))), chosen) == {TP: None}
        for over in (state(1, 4, 3), state(2, 3), state(2, 3, 1, removing=(1,))):
            assert pending(cluster(orders=over), chosen) == {}
        assert pending(cluster(), chosen) == {}


class TestReturning:
    MOVED = {TP: Moved(FIRST_EPOCH, home=(1, 2, 3), asked=(1, 3))}  # noqa: RUF012

    def test_what_we_moved_goes_back(self) -> None:
        assert returning(cluster(orders=state(1, 3)), self.MOVED) == {TP: (1, 2, 3)}
        on_its_way = state(1, 2, 3, is_adding=True)
        assert returning(cluster(orders=on_its_way), self.MOVED) == {TP: None}
        assert returning(cluster(orders=state(1, 2, 3)), self.MOVED) == {}

    def test_what_others_moved_or_deleted_since_is_theirs(self) -> None:
        assert returning(cluster(orders=state(3, 4)), self.MOVED) == {}
        assert returning(cluster(), self.MOVED) == {}
        assert returning(cluster(orders=state(1, 3), deletions=("orders",)), self.MOVED) == {}
        another = {TP: Moved(SECOND_EPOCH, home=(1, 2, 3), asked=(1, 3))}
        assert returning(cluster(orders=state(1, 3)), another) == {}


def test_a_broker_leaves_a_trace_as_long_as_anything_names_it() -> None:
    assert trace_of(cluster(1, 2, orders=state(1, 2)), "broker-2") == REGISTERED
    assert trace_of(cluster(1, orders=state(1, 2)), "broker-2") == "it is a replica of orders-0"
    assert trace_of(cluster(1, orders=state(1)), "broker-2") is None


class TestRollingRestart:
    @pytest.mark.parametrize(
        ("sequence", "turns"),
        [
            ("by-id", ["broker-1", "broker-2", "broker-3"]),
            ("controller-last", ["broker-1", "broker-3", "broker-2"]),
            ("controller-first", ["broker-2", "broker-1", "broker-3"]),
        ],
    )
    def test_whose_turn_it_is(self, sequence: RestartOrder, turns: list[str]) -> None:
        waiting = ["broker-3", "broker-1", "broker-2"]
        observed = cluster(1, 2, 3, controller=2)
        collected = []
        while waiting:
            collected.append(next_in_turn(sequence, waiting, observed))
            waiting.remove(collected[-1])
        assert collected == turns

    def test_the_controller_is_looked_for_each_time(self) -> None:
        waiting = ["broker-1", "broker-3"]
        assert next_in_turn("controller-first", waiting, cluster(controller=3)) == "broker-3"
        assert next_in_turn("controller-first", waiting, cluster()) == "broker-1"
        assert next_in_turn("controller-last", waiting, cluster(controller=1)) == "broker-3"

    def test_a_broker_is_back_when_it_is_registered_anew_and_in_sync(self) -> None:
        behind = state(1, 2, isr=(1,))
        assert missing_of(cluster(1, orders=behind), "broker-2", 9) == "it is not registered again"
        assert (
            missing_of(cluster(1, 2, orders=behind), "broker-2", 10) == "it is not registered again"
        )
        assert (
            missing_of(cluster(1, 2, orders=behind), "broker-2", 9)
            == "it is not in sync in orders-0"
        )
        assert missing_of(cluster(1, 2, orders=state(1, 2)), "broker-2", 9) is None
        leaving_it = state(1, 2, isr=(1,), removing=(2,))
        assert missing_of(cluster(1, 2, orders=leaving_it), "broker-2", 9) is None
