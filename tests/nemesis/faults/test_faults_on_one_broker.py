"""Several faults on one broker, and recipes that need them."""

from __future__ import annotations

from random import Random

import pytest

from nemesis.faults import selectors
from nemesis.faults.base import DrawRange, FaultContext, SelectorUnresolved
from nemesis.faults.connections import SlowLink
from nemesis.faults.kill import Kill
from nemesis.faults.plan import PlannedFault
from nemesis.faults.recipes import RECIPES
from nemesis.faults.stall import StallFollower
from nemesis.faults.stray_requests import TRANSACTION_KEYS, StrayRequests
from nemesis.history.events import Kind
from nemesis.testing import assert_valid, simulate_plan
from tests.nemesis.faults.simulated_cluster import in_cluster

DURATIONS = DrawRange(4.0, 5.0)


def test_touched_is_a_living_broker_that_another_fault_has_struck() -> None:
    async def test(context: FaultContext) -> None:
        with pytest.raises(SelectorUnresolved, match="no fault in force"):
            await selectors.resolve("touched", context, Random(1))
        context.touched["broker-3"] += 1
        context.struck["broker-2"] += 1
        assert await selectors.resolve("touched", context, Random(1)) == ["broker-2"]
        await context.processes.kill("broker-2")
        with pytest.raises(SelectorUnresolved, match="no fault in force"):
            await selectors.resolve("touched", context, Random(1))

    in_cluster(test)


def test_a_broker_that_is_stalled_dies_and_both_faults_end() -> None:
    plan = (
        PlannedFault(5.0, StallFollower(selector="follower", duration_s=6.0)),
        PlannedFault(7.0, Kill(selector="touched", duration_s=1.0)),
    )
    run = simulate_plan(plan, options={"producers": 2, "consumers": 1})
    assert_valid(run)
    struck = [e.targets for e in run.simulated.events if e.kind == Kind.FAULT_APPLIED]
    assert len(struck) == 2
    assert struck[0] == struck[1]


def test_a_slow_broker_dies_only_when_its_slowness_was_measured() -> None:
    """Its probes were cut off, late-requests seed 701: the run was unknown."""
    plan = (
        PlannedFault(5.0, SlowLink(selector="controller", delay_ms=900, duration_s=8.0)),
        PlannedFault(5.3, Kill(selector="touched", duration_s=2.0)),
    )
    run = simulate_plan(plan, options={"producers": 2, "consumers": 1})
    assert_valid(run)
    steps = [
        (event.kind, event.fault)
        for event in run.simulated.events
        if event.kind in (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED)
    ]
    assert steps == [
        (kind, fault)
        for fault in ("slow-link", "kill")
        for kind in (Kind.FAULT_INVOKE, Kind.FAULT_APPLIED)
    ]


@pytest.mark.parametrize("name", ["leader-for-clients-only", "leadership-returns"])
def test_a_leader_comes_back(name: str) -> None:
    """Some partition is led by A, then by another broker, then by A again."""
    steps = RECIPES[name].steps(Random(1), DURATIONS)
    plan = tuple(PlannedFault(5.0 + at_s, fault) for at_s, fault in steps)
    run = simulate_plan(plan, options={"producers": 2, "consumers": 1})
    assert_valid(run)
    leaders: dict[tuple[str | None, int | None], list[int]] = {}
    for event in run.simulated.events:
        if event.kind == Kind.LEADER_ELECTED and event.leader is not None and event.leader >= 0:
            terms = leaders.setdefault((event.topic, event.partition), [])
            if terms[-1:] != [event.leader]:
                terms.append(event.leader)
    returned = [
        terms
        for terms in leaders.values()
        if any(a == c for a, c in zip(terms, terms[2:], strict=False))
    ]
    assert returned


def planned(name: str) -> tuple[PlannedFault, ...]:
    """Return the faults of a recipe, from the fifth second on."""
    steps = RECIPES[name].steps(Random(1), DURATIONS)
    return tuple(PlannedFault(5.0 + at_s, fault) for at_s, fault in steps)


def test_a_controller_knows_of_a_registration_before_the_broker_does() -> None:
    run = simulate_plan(planned("registered-late"), options={"producers": 2, "consumers": 1})
    assert_valid(run)
    own: dict[str, int] = {}
    early = 0
    for event in sorted(run.simulated.events, key=lambda event: (event.time, event.seq)):
        if event.kind == Kind.BROKER_REGISTERED:
            own[event.process] = event.broker_epoch or 0
        elif event.kind == Kind.CONTROL_REQUEST_HANDLED and event.process in own:
            early += (event.broker_epoch or 0) > own[event.process]
    assert early > 0


def test_brokers_that_have_been_the_controller_are_elected_again() -> None:
    """In most seeds: the second to resign may be followed by the first, and the third broker be elected last."""
    again = 0
    for seed in range(4):
        run = simulate_plan(
            planned("controllers-in-turn"), seed=seed, options={"producers": 2, "consumers": 1}
        )
        assert_valid(run)
        events = run.simulated.events
        elected = [event.node for event in events if event.kind == Kind.CONTROLLER_ELECTED]
        assert len(elected) == 4
        if len(set(elected[:3])) == 3:
            assert elected[3] in elected[:2]
            again += 1
    assert again > 0


def test_requests_of_transactions_stop_and_their_coordinator_loses_its_session() -> None:
    run = simulate_plan(
        planned("late-transaction-requests"),
        "transactions",
        options={"producers": 1, "consumers": 1},
    )
    assert_valid(run)
    applied = [event for event in run.simulated.events if event.kind == Kind.FAULT_APPLIED]
    assert [event.fault for event in applied] == ["stray-requests", "expire-session"]
    assert applied[0].targets == applied[1].targets


def test_the_recipe_of_transactions_draws_each_kind_of_request() -> None:
    steps = RECIPES["late-transaction-requests"].steps
    drawn = [steps(Random(seed), DURATIONS)[0][1] for seed in range(40)]
    assert {fault.requests for fault in drawn if isinstance(fault, StrayRequests)} == set(
        TRANSACTION_KEYS
    )
