"""Every plan that is drawn can be run, and plans shrink to what is easy to read."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from nemesis.faults import FAULTS
from nemesis.faults import plan as plans
from nemesis.faults.kill import Kill
from nemesis.faults.partition import Partition
from nemesis.faults.plan import Plan
from nemesis.scenarios import scenario
from nemesis.support.errors import UsageError
from nemesis.testing import fault_plans, faults, operations, schedules, seeds, workload_options
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

SCENARIO = scenario.load("partition-controller")
FAST = settings(max_examples=60)


@FAST
@given(plan=fault_plans(SCENARIO, within_s=25.0, max_faults=5))
def test_a_plan_is_one_that_a_run_takes(plan: Plan) -> None:
    plans.check(plan, nodes=SCENARIO.nodes, end_s=25.0)
    assert 1 <= len(plan) <= 5
    assert [item.at_s for item in plan] == sorted(item.at_s for item in plan)
    assert all(item.at_s >= SCENARIO.phases.warm_up_s for item in plan)
    assert {item.fault.name for item in plan} <= set(SCENARIO.faults.kinds)
    assert plans.decode(plans.encode(plan)) == plan


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_of_fault_has_a_strategy(kind: str) -> None:
    @settings(FAST, max_examples=20)
    @given(fault=faults(kind, SCENARIO))
    def holds(fault: object) -> None:
        assert isinstance(fault, FAULTS[kind])
        fault.check(SCENARIO.nodes)

    holds()


def test_a_field_with_a_range_and_a_description_is_drawn() -> None:
    slow = find(faults("slow-link", SCENARIO), lambda fault: getattr(fault, "delay_ms", 0) > 1_000)
    assert getattr(slow, "delay_ms", 0) == 1_001


@pytest.mark.parametrize(
    ("kinds", "smallest"),
    [
        (["kill"], Kill(selector="controller", duration_s=5.0)),
        (["partition"], Partition(shape="halves", selector="controller", duration_s=5.0)),
    ],
    ids=["kill", "partition"],
)
def test_a_plan_shrinks_to_one_plain_short_early_fault(kinds: list[str], smallest: object) -> None:
    plan = find(fault_plans(SCENARIO, kinds=kinds), lambda _: True)
    (planned,) = plan
    assert planned.at_s == SCENARIO.phases.warm_up_s
    assert planned.fault == smallest


def test_a_plan_shrinks_to_the_faults_that_are_needed() -> None:
    def counts(plan: Plan) -> bool:
        names = [item.fault.name for item in plan]
        return "partition" in names and "expire-session" in names

    names = [item.fault.name for item in find(fault_plans(SCENARIO), counts)]
    assert sorted(names) == ["expire-session", "partition"]


@FAST
@given(options=workload_options(producers=3))
def test_workload_options_are_options_of_the_workload(options: dict[str, int]) -> None:
    assert msgspec.convert(options, ProduceConsumeOptions).producers <= 3


def test_the_simplest_of_the_rest_is_little() -> None:
    rest = st.tuples(operations(), schedules(), seeds())
    count, turns, seed = find(rest, lambda _: True)
    assert (count, turns.deviation_rate, seed) == (0, 0.0, 0)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown fault 'flood'"):
        fault_plans(kinds=["flood"])


def test_a_time_into_which_no_fault_fits_is_refused() -> None:
    with pytest.raises(UsageError, match="within_s is 8: warm-up and the longest fault alone take"):
        fault_plans(SCENARIO, within_s=8.0)
