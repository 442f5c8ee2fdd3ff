"""A plan is simulated, and what is asserted of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.faults.pause import Pause
from nemesis.faults.plan import PlannedFault
from nemesis.faults.session import ExpireSession
from nemesis.searching.replay import replay
from nemesis.support.errors import UsageError
from nemesis.testing import PlanRun, Turns, assert_valid, simulate_plan, simulation_settings

PLAN = (PlannedFault(4.0, ExpireSession(selector="controller")),)
FEW = {"producers": 2, "consumers": 1}


@pytest.fixture(scope="module")
def sound() -> PlanRun:
    return simulate_plan(PLAN, options=FEW)


@pytest.fixture(scope="module")
def broken() -> PlanRun:
    return simulate_plan(PLAN, options=FEW, mutant="hw-follows-leader-leo", seed=3)


def undecided(run: PlanRun) -> PlanRun:
    doubt = Finding(
        property="unseen", verdict=Verdict.UNKNOWN, key="orders-0", sentence="Who knows."
    )
    results = tuple(
        msgspec.structs.replace(result, verdict=Verdict.UNKNOWN, findings=(doubt,))
        if result.property == "unseen"
        else result
        for result in run.outcome.results
    )
    outcome = msgspec.structs.replace(run.outcome, verdict=Verdict.UNKNOWN, results=results)
    return replace(run, simulated=replace(run.simulated, outcome=outcome))


def test_a_sound_cluster_passes_though_some_properties_saw_nothing(sound: PlanRun) -> None:
    assert_valid(sound)
    assert sound.outcome.verdict is not Verdict.INVALID
    assert len(sound.simulated.events) > 500


def test_the_run_is_as_short_as_the_plan_allows(sound: PlanRun) -> None:
    assert sound.spec.scenario.time_limit_s == 15.0


def test_a_broken_property_fails_and_tells_how_to_get_there(broken: PlanRun) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_valid(broken)
    said = str(failed.value)
    assert "hw-bounded: " in said
    assert "seed 3, 15 s, with the plan:" in said
    assert "- at_s: 4.0\n  fault: expire-session" in said


def test_a_run_can_be_kept_and_repeated(broken: PlanRun, tmp_path: Path) -> None:
    assert replay(broken.store(tmp_path)).is_identical


def test_an_undecided_run_is_no_pass(sound: PlanRun) -> None:
    with pytest.raises(AssertionError, match="decides nothing:\nunseen: orders-0: Who knows"):
        assert_valid(undecided(sound))


def test_inside_hypothesis_an_undecided_run_is_no_example(sound: PlanRun) -> None:
    observed = []

    @simulation_settings(max_examples=10, phases=[Phase.generate])
    @given(is_doubtful=st.booleans())
    def examined(is_doubtful: bool) -> None:
        assert_valid(undecided(sound) if is_doubtful else sound)
        observed.append(is_doubtful)

    examined()
    assert observed
    assert not any(observed)


def test_turns_and_operations_reach_the_order() -> None:
    run = simulate_plan(PLAN, turns=Turns(deviation_rate=0.0), max_operations=5)
    assert run.simulated.deviations == 0
    assert len(run.simulated.issued) == 5


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown mutant 'none'"):
        simulate_plan(PLAN, mutant="none")
    late = (PlannedFault(10.0, Pause(selector="controller", duration_s=10.0)),)
    with pytest.raises(UsageError, match="ends at 20 s"):
        simulate_plan(late, time_limit_s=20.0)


def test_without_hypothesis_one_sentence_says_what_is_missing() -> None:
    code = (
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'hypothesis' else found(name, *rest)\n"
        "import nemesis.testing"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ModuleNotFoundError: nemesis.testing needs Hypothesis: "
        "`pip install 'nemesis-kafka[testing]'` brings it"
    )
