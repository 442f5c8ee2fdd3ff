"""Brokers that join, leave and are restarted in turn, in simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from nemesis.faults.add_broker import AddBroker
from nemesis.faults.administrator import Administrator, Replicas, TopicPartition
from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import ClusterSnapshot
from nemesis.faults.departure import depart, trace_of
from nemesis.faults.link_rules import HoldRequests
from nemesis.faults.moves import Moves
from nemesis.faults.plan import PlannedFault
from nemesis.faults.remove_broker import RemoveBroker
from nemesis.faults.rolling_restart import RollingRestart
from nemesis.history.events import Event, Kind
from nemesis.interfaces.errors import NodeExited
from nemesis.interfaces.links import CONTROL_API_KEYS, FETCH_API_KEY, Link
from nemesis.runtimes.simulation.processes import SimulationMembership
from nemesis.support.errors import UsageError
from nemesis.support.node_names import id_of, node_of
from nemesis.testing import assert_valid, simulate_plan
from tests.nemesis.faults.simulated_cluster import (
    create_topic,
    delete_topic,
    healed,
    in_cluster,
    struck,
)

BROKERS = ["broker-1", "broker-2", "broker-3"]


def replicas(cluster_snapshot: ClusterSnapshot) -> dict[tuple[str, int], tuple[int, ...]]:
    return {tp: state.replicas for tp, state in cluster_snapshot.partitions.items()}


def epochs(cluster_snapshot: ClusterSnapshot) -> dict[int, int]:
    return {broker: owner.czxid for broker, owner in cluster_snapshot.brokers.items()}


class TestAddBroker:
    def test_it_is_a_member_with_replicas_and_leaves_no_trace(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            before = await context.view.snapshot()
            strike = await struck(AddBroker(partitions=2), context)
            assert strike.victims == ["broker-4"]
            assert context.cluster.brokers == [*BROKERS, "broker-4"]
            assert await context.network.probe("broker-1", "broker-4", timeout_s=1.0)
            snapshot = await context.view.snapshot()
            assert 4 in snapshot.brokers
            assert len([s for s in snapshot.partitions.values() if 4 in s.isr]) == 2
            assert not (await strike.verify()).is_effective
            await healed(strike, context)
            assert context.cluster.brokers == BROKERS
            assert not context.is_alive("broker-4")
            assert replicas(await context.view.snapshot()) == replicas(before)

        in_cluster(test)

    def test_the_next_one_has_another_id(self) -> None:
        async def test(context: FaultContext) -> None:
            first = await struck(AddBroker(), context)
            second = await struck(AddBroker(), context)
            await healed(first, context)
            third = await struck(AddBroker(), context)
            assert [*second.victims, *third.victims] == ["broker-5", "broker-6"]
            assert context.cluster.brokers == [*BROKERS, "broker-5", "broker-6"]

        in_cluster(test)

    def test_one_that_does_not_start_is_no_effect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def test(context: FaultContext) -> None:
            async def exits(_self: object, node: str) -> None:
                raise NodeExited(f"{node} has exited")

            monkeypatch.setattr(SimulationMembership, "add_broker", exits)
            strike = await AddBroker().aim(context, Random(1))
            measured = await strike.apply()
            assert not measured.is_effective
            assert measured.detail == {"exited": "broker-4 has exited"}
            with pytest.raises(NodeExited):
                await strike.undo()

        in_cluster(test)

    def test_without_an_address_nobody_joins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def test(context: FaultContext) -> None:
            monkeypatch.setattr(SimulationMembership, "next_broker", None)
            with pytest.raises(SelectorUnresolved, match="no address"):
                await AddBroker().aim(context, Random(1))

        in_cluster(test)


class TestRemoveBroker:
    def test_it_leaves_nothing_behind_and_gets_it_all_back(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            before = await context.view.snapshot()
            strike = await struck(RemoveBroker(selector="controller"), context)
            [node] = strike.victims
            assert before.controller is not None
            assert node == node_of(before.controller.broker_id)
            assert not context.is_alive(node)
            assert not context.can_answer(node)
            snapshot = await context.view.snapshot()
            assert trace_of(snapshot, node) is None
            assert all(len(state.isr) == 2 for state in snapshot.partitions.values())
            assert not (await strike.verify()).is_effective
            await healed(strike, context)
            snapshot = await context.view.snapshot()
            assert replicas(snapshot) == replicas(before)
            assert context.can_answer(node)

        in_cluster(test)

    def test_a_removal_that_takes_too_long_is_given_up(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            before = await context.view.snapshot()
            context.administrator = HardOfHearing(context)
            strike = await RemoveBroker(selector="broker-2", patience_s=1.0).aim(context, Random(1))
            measured = await strike.apply()
            assert not measured.is_effective
            assert measured.detail == {"given_up": {"not_moved": ["t-1", "t-2"]}}
            assert context.is_alive("broker-2")
            assert replicas(await context.view.snapshot()) == replicas(before)
            await healed(strike, context)

        in_cluster(test)

    def test_a_replica_that_it_is_given_in_the_last_moment_is_moved_when_it_has_gone(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            left = await depart(context, "broker-2", TooEarly(context, Random(1)), patience_s=20.0)
            assert left.is_effective
            assert left.detail["ended"]["pid"] == 1
            assert trace_of(await context.view.snapshot(), "broker-2") is None

        in_cluster(test)

    def test_it_comes_back_for_a_topic_that_is_being_deleted(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            controller = (await context.view.snapshot()).controller
            assert controller is not None
            node = next(name for name in BROKERS if id_of(name) != controller.broker_id)
            left = await depart(context, node, WhileATopicIsDeleted(context, node), patience_s=20.0)
            assert left.is_effective
            assert left.detail["ended"]["pid"] == 2
            snapshot = await context.view.snapshot()
            assert not snapshot.partitions
            assert not snapshot.deletions

        in_cluster(test)

    def test_a_partition_that_has_no_state_yet_may_be_about_to_name_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            looks: list[ClusterSnapshot] = []
            snapshot = context.view.snapshot

            async def as_if_just_created() -> ClusterSnapshot:
                observed = await snapshot()
                if 2 in observed.brokers or looks:
                    return observed
                looks.append(observed)
                return replace(observed, partitions={}, unassigned=tuple(observed.partitions))

            monkeypatch.setattr(context.view, "snapshot", as_if_just_created)
            left = await depart(context, "broker-2", TooEarly(context, Random(1)), patience_s=20.0)
            assert len(looks) == 1
            assert left.is_effective
            assert trace_of(await snapshot(), "broker-2") is None

        in_cluster(test)

    def test_two_brokers_can_spare_none(self) -> None:
        with pytest.raises(UsageError, match="needs 3 brokers at least, this cluster has 2"):
            RemoveBroker().check(frozenset({"broker-1", "broker-2", "zookeeper-1"}))


class TestRollingRestart:
    def test_every_broker_has_a_new_epoch_and_the_controller_moves_once(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            before = await context.view.snapshot()
            strike = await struck(RollingRestart(), context)
            assert sorted(strike.victims) == BROKERS
            snapshot = await context.view.snapshot()
            old, new = epochs(before), epochs(snapshot)
            assert all(new[broker] > old[broker] for broker in old)
            assert all(set(state.isr) == {1, 2, 3} for state in snapshot.partitions.values())
            assert snapshot.controller_epoch == before.controller_epoch + 1
            await healed(strike, context)

        in_cluster(test)

    def test_the_controller_moves_whenever_it_can(self) -> None:
        async def test(context: FaultContext) -> None:
            before = await context.view.snapshot()
            await struck(RollingRestart(order="controller-first"), context)
            snapshot = await context.view.snapshot()
            assert snapshot.controller_epoch >= before.controller_epoch + 2

        in_cluster(test)

    def test_one_that_is_not_back_in_time_ends_it(self) -> None:
        async def test(context: FaultContext) -> None:
            await create_topic(context)
            before = await context.view.snapshot()
            fetches = frozenset(Link("broker-2", leader, FETCH_API_KEY) for leader in BROKERS)
            hold = context.links.guard(HoldRequests(fetches))
            await hold.put()
            fault = RollingRestart(order="by-id", back_within_s=3.0)
            strike = await fault.aim(context, Random(1))
            measured = await strike.apply()
            assert not measured.is_effective
            assert measured.detail.keys() == {"broker-1", "broker-2"}
            assert measured.detail["broker-2"]["missing"].startswith("it is not in sync in t-")
            snapshot = await context.view.snapshot()
            assert epochs(snapshot)[3] == epochs(before)[3]
            await hold.remove()
            await healed(strike, context)

        in_cluster(test)


class HardOfHearing(Administrator):
    """Asks for what concerns t-0 only."""

    def __init__(self, context: FaultContext) -> None:
        super().__init__(context.cluster)

    async def reassign(
        self, wanted: Mapping[TopicPartition, Replicas], rng: Random, *, deadline: float
    ) -> None:
        heard = {tp: replicas for tp, replicas in wanted.items() if tp == ("t", 0)}
        await super().reassign(heard, rng, deadline=deadline)


class TooEarly(Moves):
    """Says at first that there is nothing to move."""

    is_wrong = True

    async def away_from(self, broker: int, *, deadline: float) -> list[tuple[str, int]]:
        if self.is_wrong:
            self.is_wrong = False
            return []
        return await super().away_from(broker, deadline=deadline)


class WhileATopicIsDeleted(Moves):
    """Says at first that there is nothing to move, while the broker does not hear of a deletion."""

    def __init__(self, context: FaultContext, node: str) -> None:
        super().__init__(context, Random(1))
        self._cluster = context
        links = frozenset(Link(other, node, key) for other in BROKERS for key in CONTROL_API_KEYS)
        self._hold = context.links.guard(HoldRequests(links))
        self._is_wrong = True

    async def away_from(self, broker: int, *, deadline: float) -> list[tuple[str, int]]:
        if self._is_wrong:
            self._is_wrong = False
            await self._hold.put()
            await delete_topic(self._cluster)
            return []
        await self._hold.remove()
        return await super().away_from(broker, deadline=deadline)


def test_a_run_with_all_of_them_is_valid_and_repeatable_and_its_moves_are_judged() -> None:
    plan = (
        PlannedFault(5.0, AddBroker(duration_s=4.0, partitions=3)),
        PlannedFault(11.0, RemoveBroker(selector="leader", duration_s=3.0)),
        PlannedFault(17.0, RollingRestart(order="controller-first")),
    )
    run, again = (simulate_plan(plan, options={"producers": 2, "consumers": 1}) for _ in range(2))
    assert_valid(run)
    assert again.simulated.trace_hash == run.simulated.trace_hash
    assert run.simulated.node_errors == ()
    asked = [event for event in run.simulated.events if event.process == "administrator"]
    assert {event.f for event in asked} == {"reassign"}
    assert [event for event in asked if event.kind == Kind.OK]
    processes = {event.process for event in run.simulated.events if from_a_broker(event)}
    assert processes >= {*BROKERS, "broker-4"}
    (judged,) = [
        result for result in run.simulated.outcome.results if result.property == "reassignment"
    ]
    assert judged.checked


def from_a_broker(event: Event) -> bool:
    return event.process.startswith("broker-") and id_of(event.process) > 0
