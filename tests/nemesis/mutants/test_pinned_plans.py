"""Every planted bug is found in simulation by the property named for it, on the plan that is pinned for it.

The plan is the bug's story; which moment a fault meets is the seed's. A change of the reference moves those moments, so
a bug has a few seeds to show itself. That the correct code is not convicted on the same plans is tried at night.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.faults import plan as plans
from nemesis.mutants import MUTANTS, Mutant
from nemesis.scenarios import scenario as scenarios
from nemesis.testing import assert_valid, simulate_plan
from nemesis.testing.running import PlanRun

PLANS = Path(__file__).parents[2] / "plans"
SEEDS = range(5)
CONVERGENCE_S = 8.0
"""Shorter than in the scenarios: a bug that lets nothing converge is waited for."""
FEW_CLIENTS = {"producers": 1, "consumers": 1}


def run(mutant: Mutant, seed: int, *, planted: bool) -> PlanRun:
    scenario = scenarios.load(mutant.scenario)
    phases = msgspec.structs.replace(scenario.phases, convergence_s=CONVERGENCE_S)
    return simulate_plan(
        plans.read(PLANS / f"{mutant.name}.yaml"),
        msgspec.structs.replace(scenario, phases=phases),
        seed=seed,
        options=FEW_CLIENTS,
        mutant=mutant.name if planted else None,
    )


def broken(outcome: Outcome) -> list[str]:
    return [result.property for result in outcome.results if result.verdict is Verdict.INVALID]


def test_every_planted_bug_has_a_pinned_plan() -> None:
    assert {path.stem for path in PLANS.glob("*.yaml")} == set(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_by_the_property_named_for_it(mutant: Mutant) -> None:
    said = []
    for seed in SEEDS:
        result = run(mutant, seed, planted=True)
        said.append(broken(result.outcome))
        if mutant.property in said[-1]:
            return
    pytest.fail(f"{mutant.property} did not find {mutant.name}; invalid were {said}")


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_the_correct_code_is_valid_on_the_same_plan(mutant: Mutant) -> None:
    for seed in SEEDS:
        assert_valid(run(mutant, seed, planted=False))
