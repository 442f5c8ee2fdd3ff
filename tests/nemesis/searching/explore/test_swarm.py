"""Swarm: what a seed makes of a scenario."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nemesis.scenarios import scenario
from nemesis.scenarios.scenario import Scenario, SimulationSettings
from nemesis.searching.explore.swarm import vary
from nemesis.simulation.links import LATENCIES
from nemesis.support.errors import UsageError

SCENARIO = scenario.load("partition-controller")
SEEDS = range(60)


@given(seed=st.integers(0, scenario.MAX_SEED))
@hypothesis_settings(max_examples=30)
def test_a_variation_is_a_function_of_its_seed_and_a_sound_scenario(seed: int) -> None:
    varied = vary(SCENARIO, seed)
    assert varied == vary(SCENARIO, seed)
    scenario.check(varied.scenario)
    assert varied.plan
    assert {planned.fault.name for planned in varied.plan} <= set(SCENARIO.faults.kinds)


def test_seeds_leave_kinds_out_and_weigh_the_others() -> None:
    settings = [vary(SCENARIO, seed).scenario.faults for seed in SEEDS]
    assert all(drawn.kinds for drawn in settings)
    for kind in SCENARIO.faults.kinds:
        present = sum(kind in drawn.kinds for drawn in settings)
        assert 0.4 * len(SEEDS) < present < len(SEEDS)
    weights = Counter(weight for drawn in settings for weight in drawn.weights.values())
    assert set(weights) == {1, 2, 4}


def test_what_was_left_out_does_not_strike() -> None:
    for seed in SEEDS:
        varied = vary(SCENARIO, seed)
        struck = {planned.fault.name for planned in varied.plan}
        assert struck <= set(varied.scenario.faults.kinds)


def test_every_kind_and_every_recipe_still_comes_up() -> None:
    variations = [vary(SCENARIO, seed) for seed in SEEDS]
    struck = {planned.fault.name for varied in variations for planned in varied.plan}
    assert struck == set(SCENARIO.faults.kinds)


def test_some_schedules_are_plain_and_the_others_stray_by_orders_of_magnitude() -> None:
    rates = [vary(SCENARIO, seed).deviation_rate for seed in SEEDS]
    strayed = [rate for rate in rates if rate]
    assert 0.1 < 1 - len(strayed) / len(rates) < 0.45
    assert min(strayed) < 0.01 < 0.1 < max(strayed) <= 0.2


def test_the_load_differs_and_is_on_average_what_the_scenario_states() -> None:
    options = [vary(SCENARIO, seed).scenario.simulation.options for seed in range(300)]
    for clients, interval in (("producers", "send_interval_ms"), ("consumers", "poll_interval_ms")):
        stated = SCENARIO.simulation.options
        rates = [drawn[clients] / drawn[interval] for drawn in options]
        mean = sum(rates) / len(rates)
        assert mean == pytest.approx(stated[clients] / stated[interval], rel=0.1)
        assert max(rates) > 2 * min(rates)
        assert {drawn[clients] for drawn in options} == {1, 2, 4, 8}


def test_half_of_the_networks_are_as_stated_and_the_others_any() -> None:
    calm = [vary(SCENARIO, seed).scenario.simulation.latency for seed in range(300)]
    assert Counter(calm)["calm"] == pytest.approx(200, abs=30)
    assert set(calm) == {"calm", "slow", "spiky"} == set(LATENCIES)
    stated = msgspec.structs.replace(SCENARIO, simulation=SimulationSettings(latency="slow"))
    slow = [vary(stated, seed).scenario.simulation.latency for seed in range(300)]
    assert Counter(slow)["slow"] == pytest.approx(200, abs=30)


def test_a_load_that_is_not_stated_stays_so() -> None:
    silent = msgspec.structs.replace(
        SCENARIO,
        workload=msgspec.structs.replace(SCENARIO.workload, options={"producers": 3}),
        simulation=SimulationSettings(),
    )
    assert vary(silent, 1).scenario.simulation.options == {}


def test_a_single_kind_stays() -> None:
    only = scenario.override(SCENARIO, kinds=("pause",))
    assert {vary(only, seed).scenario.faults.kinds for seed in SEEDS} == {("pause",)}


def test_a_time_limit_without_room_for_a_fault_is_refused() -> None:
    cramped = Scenario(
        name="cramped",
        time_limit_s=15.0,
        faults=msgspec.structs.replace(SCENARIO.faults, kinds=("kill",), duration_s=(9.0, 9.0)),
    )
    with pytest.raises(UsageError, match="no fault fits into a time limit of 15 s"):
        vary(cramped, 1)
