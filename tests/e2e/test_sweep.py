"""The long sweeps: the reference is always valid, and every planted bug is found without a plan of its own.

On processes of this machine, and in containers; there the reference meets every fault that this machine can do.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nemesis.mutants import MUTANTS
from nemesis.scenarios.scenario import names_for
from tests.e2e.command import SCENARIO, latest, nemesis
from tests.e2e.docker_machine import needs_docker
from tests.e2e.planted_bugs import IN_REAL_PROCESSES
from tests.e2e.verdicts import valid_run

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1200)]

SEEDS = range(1, 11)
SEEDS_TO_DETECT = 5
DOCKER = ("--runtime", "docker")


def runtime_of(options: Sequence[str]) -> str:
    return "docker" if options else "local"


def results(tmp_path: Path) -> dict[str, str]:
    outcome = json.loads((latest(tmp_path) / "results.json").read_text())
    return {result["property"]: result["verdict"] for result in outcome["results"]}


@pytest.mark.parametrize("scenario", names_for("reference"))
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_is_valid(seed: int, scenario: str, tmp_path: Path) -> None:
    valid_run(tmp_path, scenario, "--seed", str(seed))


@needs_docker
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_is_valid_under_all_that_this_machine_can_do(
    seed: int, tmp_path: Path
) -> None:
    options = ("--seed", str(seed), *DOCKER, "--faults", "all")
    valid_run(tmp_path, SCENARIO, *options)


@pytest.mark.parametrize("options", [(), pytest.param(DOCKER, marks=needs_docker)], ids=runtime_of)
@pytest.mark.parametrize("name", IN_REAL_PROCESSES)
def test_a_planted_bug_is_found_within_five_seeds(
    name: str, options: Sequence[str], tmp_path: Path
) -> None:
    mutant = MUTANTS[name]
    said = []
    for seed in range(1, SEEDS_TO_DETECT + 1):
        asked = ("--seed", str(seed), "--mutant", mutant.name, *options)
        ran = nemesis(tmp_path, "run", SCENARIO, *asked)
        assert ran.returncode in (0, 1, 2), ran.stdout + ran.stderr
        verdicts = results(tmp_path)
        said.append(sorted(name for name, verdict in verdicts.items() if verdict == "invalid"))
        if verdicts[mutant.property] == "invalid":
            return
    pytest.fail(f"{mutant.property} did not find {mutant.name}; invalid were {said}")
