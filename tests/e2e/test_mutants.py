"""Planted bugs in real processes are found by the properties named for them, on the plans that are pinned for them.

One bug of each kind: of what controllers say, write and elect, of high watermarks, acknowledgements and logs; most of
them, and those in containers, every night only. All of the bugs are found in simulation
(``tests/nemesis/mutants/test_pinned_plans.py``). Real processes do not repeat themselves exactly, so a bug has a few
runs to show itself; the plan stays the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.mutants import MUTANTS
from tests.e2e.command import SCENARIO, events, latest, nemesis
from tests.e2e.docker_machine import build_image, needs_docker
from tests.e2e.planted_bugs import IN_REAL_PROCESSES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PLANS = Path(__file__).parents[1] / "plans"
RUNTIMES = ("local", pytest.param("docker", marks=[pytest.mark.nightly, needs_docker]))
TRIES = 5


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", IN_REAL_PROCESSES)
def test_a_planted_bug_is_found_by_the_property_named_for_it(
    name: str, runtime: str, tmp_path: Path
) -> None:
    if runtime == "docker":
        build_image()
    mutant = MUTANTS[name]
    plan = PLANS / f"{mutant.name}.yaml"
    said = []
    for seed in range(TRIES):
        planted = ["--runtime", runtime, "--plan", str(plan), "--mutant", mutant.name]
        options = ["--seed", str(seed), "--time-limit", "18", "--engine", "inline", "--json"]
        ran = nemesis(tmp_path, "run", SCENARIO, *planted, *options)
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
