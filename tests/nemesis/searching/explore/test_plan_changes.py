"""A changed plan is a legal plan of the scenario, and differs in one fault."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nemesis.faults import plan as plans
from nemesis.faults.plan import Plan, PlannedFault
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.plan_changes import CHANGES, PlanLimits, change, drop
from nemesis.searching.explore.swarm import vary

SCENARIOS = {
    name: scenarios.override(scenarios.load(name), runtime="simulation", time_limit_s=40)
    for name in ("partition-controller", "late-requests")
}

names = st.sampled_from(sorted(SCENARIOS))
seeds = st.integers(0, 2**32)


def written(plan: Plan) -> Counter[str]:
    return Counter(str(fault) for fault in plans.encode(plan))


@given(name=names, seed=seeds, rng=st.randoms(use_true_random=False), changes=st.integers(1, 8))
def test_a_changed_plan_is_legal(name: str, seed: int, rng: Random, changes: int) -> None:
    scenario = SCENARIOS[name]
    limits = PlanLimits.of(scenario)
    plan = vary(scenario, seed).plan
    for _ in range(changes):
        plan = change(rng, plan, limits)
        assert plan
        plans.check(plan, nodes=scenario.nodes, end_s=scenario.faults_end_s)
        assert plans.decode(plans.encode(plan)) == plan
        assert all(limits.allow(planned) for planned in plan)


@given(name=names, seed=seeds, rng=st.randoms(use_true_random=False))
@example(name="partition-controller", seed=5364, rng=Random(53641))  # two faults at one time
def test_one_fault_differs(name: str, seed: int, rng: Random) -> None:
    before = vary(SCENARIOS[name], seed).plan
    after = change(rng, before, PlanLimits.of(SCENARIOS[name]))
    gone, added = written(before) - written(after), written(after) - written(before)
    assert (gone.total(), added.total()) in {(1, 0), (0, 1), (1, 1)}


@given(seed=seeds)
def test_the_same_randomness_gives_the_same_change(seed: int) -> None:
    limits = PlanLimits.of(SCENARIOS["partition-controller"])
    plan = vary(limits_scenario := SCENARIOS["partition-controller"], seed).plan
    assert limits == PlanLimits.of(limits_scenario)
    assert change(Random(seed), plan, limits) == change(Random(seed), plan, limits)


@pytest.mark.parametrize("step", CHANGES)
def test_an_empty_plan_has_nothing_to_change(step: Any) -> None:
    changed = step(Random(1), (), PlanLimits.of(SCENARIOS["partition-controller"]))
    assert not changed or len(changed) == 1


def test_the_only_fault_of_a_plan_stays() -> None:
    limits = PlanLimits.of(SCENARIOS["partition-controller"])
    plan: tuple[PlannedFault, ...] = vary(SCENARIOS["partition-controller"], 1).plan[:1]
    assert drop(Random(1), plan, limits) is None
