"""The long sweeps: the reference is always valid, and every planted bug is found without a plan of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.mutants import MUTANTS, Mutant
from tests.e2e.command import SCENARIO, latest, nemesis

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(1200)]

SEEDS = range(1, 11)
SEEDS_TO_DETECT = 5


def results(tmp_path: Path) -> dict[str, str]:
    outcome = json.loads((latest(tmp_path) / "results.json").read_text())
    return {result["property"]: result["verdict"] for result in outcome["results"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_is_valid(seed: int, tmp_path: Path) -> None:
    ran = nemesis(tmp_path, "run", SCENARIO, "--seed", str(seed))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert set(results(tmp_path).values()) == {"valid"}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found_within_five_seeds(mutant: Mutant, tmp_path: Path) -> None:
    said = []
    for seed in range(1, SEEDS_TO_DETECT + 1):
        ran = nemesis(tmp_path, "run", SCENARIO, "--seed", str(seed), "--mutant", mutant.name)
        assert ran.returncode in (0, 1, 2), ran.stdout + ran.stderr
        verdicts = results(tmp_path)
        said.append(sorted(name for name, verdict in verdicts.items() if verdict == "invalid"))
        if verdicts[mutant.property] == "invalid":
            return
    pytest.fail(f"{mutant.property} did not find {mutant.name}; invalid were {said}")
