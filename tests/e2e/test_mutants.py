"""Every planted bug is found by the property named for it, on the plan that is pinned for it.

Real processes do not repeat themselves exactly, so a bug has a few runs to show itself; the plan stays the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.mutants import MUTANTS, Mutant
from tests.e2e.command import SCENARIO, events, latest, nemesis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PLANS = Path(__file__).parent / "plans"
TRIES = 5


def test_every_planted_bug_has_a_pinned_plan() -> None:
    assert {path.stem for path in PLANS.glob("*.yaml")} == set(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_by_the_property_named_for_it(
    mutant: Mutant, tmp_path: Path
) -> None:
    plan = PLANS / f"{mutant.name}.yaml"
    said = []
    for seed in range(TRIES):
        options = ["--seed", str(seed), "--time-limit", "18", "--engine", "inline", "--json"]
        ran = nemesis(
            tmp_path, "run", SCENARIO, "--plan", str(plan), "--mutant", mutant.name, *options
        )
        assert ran.returncode in (0, 1, 2), ran.stdout + ran.stderr
        outcome = json.loads((latest(tmp_path) / "results.json").read_text())
        verdicts = {result["property"]: result["verdict"] for result in outcome["results"]}
        said.append(sorted(name for name, verdict in verdicts.items() if verdict == "invalid"))
        if verdicts[mutant.property] == "invalid":
            assert ran.returncode == 1
            assert f"--mutant {mutant.name}" in json.loads(ran.stdout)["replay"]
            kinds = {event["kind"] for event in events(latest(tmp_path), "nemesis")}
            assert kinds == {"fault-invoke", "fault-applied", "fault-healed"}
            return
    pytest.fail(
        f"{mutant.property} did not find {mutant.name} in {TRIES} runs; invalid were {said}"
    )
