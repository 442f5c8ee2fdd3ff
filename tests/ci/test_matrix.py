"""The nightly matrix: every scenario on every runtime, with faults that the runtime can do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios import scenario

ROOT = Path(__file__).parents[2]


def jobs() -> list[dict[str, str]]:
    done = subprocess.run(
        [sys.executable, ".ci/matrix.py", "--seeds", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    include: list[dict[str, str]] = json.loads(done.stdout)["include"]
    return include


def test_every_scenario_of_the_reference_runs_on_every_runtime_with_faults_that_it_can_do() -> None:
    faults = {(job["scenario"], job["runtime"]): job["faults"] for job in jobs()}
    names = scenario.names_for("reference")
    assert faults.keys() == {(name, runtime) for name in names for runtime in RUNTIMES}
    assert {job for job, chosen in faults.items() if chosen} == {
        ("disk-faults", "docker"),
        ("idempotent-producers", "local"),
        ("late-requests", "docker"),
        ("late-requests", "local"),
        ("log-compaction", "docker"),
        ("log-dirs", "docker"),
        ("machine-faults", "docker"),
        ("machine-faults", "local"),
        ("transactions", "docker"),
        ("transactions", "local"),
    }


def test_simulated_runs_are_cheap_enough_for_more_seeds() -> None:
    assert {(job["runtime"], job["seeds"]) for job in jobs()} == {
        ("local", "3"),
        ("docker", "3"),
        ("simulation", "200"),
    }


def test_every_scenario_of_another_target_is_a_job_of_its_own() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text("utf-8"))
    included = workflow["jobs"]["kafka"]["strategy"]["matrix"]["include"]
    others = set(scenario.names()) - set(scenario.names_for("reference"))
    assert others == {job["scenario"] for job in included} - {"partition-controller"}


def test_the_workflow_takes_its_jobs_from_the_script() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text("utf-8"))
    planned, chaos = workflow["jobs"]["matrix"], workflow["jobs"]["chaos"]
    assert any(".ci/matrix.py" in step.get("run", "") for step in planned["steps"])
    assert chaos["strategy"]["matrix"] == "${{ fromJSON(needs.matrix.outputs.matrix) }}"
    assert chaos["needs"] == "matrix"
