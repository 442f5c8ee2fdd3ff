"""The nightly script: which seeds it runs, what it keeps, and that a night that finds a bug is a failed night."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "chaos.py"
SCENARIO = "partition-controller"


@pytest.fixture(scope="module")
def chaos() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chaos", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["chaos"] = module
    spec.loader.exec_module(module)
    return module


def test_seeds_that_failed_come_first_and_once(chaos: ModuleType, tmp_path: Path) -> None:
    failing = tmp_path / "failing-seeds.txt"
    assert chaos.read_seeds(failing) == []
    failing.write_text("7\nnot a seed\n3\n7\n")
    assert chaos.in_order(chaos.read_seeds(failing), range(2, 5)) == [7, 3, 2, 4]


def test_what_follows_two_dashes_goes_to_every_run(chaos: ModuleType, tmp_path: Path) -> None:
    options = chaos.parse([SCENARIO, "local", "--seeds", "2", "--", "--target", "kafka"])
    assert (options.seeds, options.further) == (2, ["--target", "kafka"])
    assert chaos.parse([SCENARIO, "local"]).further == []
    night = chaos.Night(SCENARIO, "local", tmp_path, further=("--target", "kafka"))
    assert night.arguments == ["run", SCENARIO, "--runtime", "local", "--target", "kafka"]
    lines = list(chaos.summary(night, [chaos.Outcome(1, "valid", "", 80.0)], planned=1))
    assert lines[0].startswith(f"### {SCENARIO} on local --target kafka: 1 valid")


def test_the_summary_begins_with_what_failed(chaos: ModuleType, tmp_path: Path) -> None:
    night = chaos.Night(SCENARIO, "local", tmp_path, 20.0)
    outcomes = [
        chaos.Outcome(1, "valid", "", 80.0),
        chaos.Outcome(2, "unknown", "duplicate unknown", 81.0),
        chaos.Outcome(3, "invalid", "hw-grows invalid: a|b", 82.4),
    ]
    lines = list(chaos.summary(night, outcomes, planned=4))
    assert lines[0].endswith("1 valid, 1 invalid, 1 unknown, 0 crashed of 4 seeds")
    assert lines[-3] == (
        "| 3 | invalid | 82 | hw-grows invalid: a\\|b | "
        f"`nemesis run {SCENARIO} --runtime local --time-limit 20 --seed 3` |"
    )
    assert [line[2] for line in lines[-2:]] == ["2", "1"]


@pytest.mark.parametrize(
    ("verdicts", "has_failed"),
    [
        (("valid", "unknown"), False),
        (("unknown", "unknown"), True),
        (("valid", "crashed"), True),
        (("invalid", "valid"), True),
        ((), True),
    ],
)
def test_a_night_that_decides_nothing_has_failed_too(
    chaos: ModuleType, verdicts: tuple[str, ...], has_failed: bool
) -> None:
    outcomes = [chaos.Outcome(seed, verdict, "", 80.0) for seed, verdict in enumerate(verdicts)]
    assert chaos.has_failed(outcomes) is has_failed


def test_what_did_not_hold_is_named_with_its_first_finding(chaos: ModuleType) -> None:
    results = [
        {"property": "a", "verdict": "valid", "findings": []},
        {"property": "b", "verdict": "invalid", "findings": [{"sentence": "x"}, {"sentence": "y"}]},
        {"property": "c", "verdict": "unknown", "findings": []},
    ]
    said = json.dumps({"outcome": {"results": results}})
    assert chaos.broken_properties(said) == "b invalid: x; c unknown"


def test_what_cannot_run_at_all_is_said_once(tmp_path: Path) -> None:
    done = run_chaos(tmp_path, "no-such-scenario", "simulation", "--seeds", "5")
    assert done.returncode == 254
    assert "no-such-scenario" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.e2e
def test_a_night_in_simulation(tmp_path: Path) -> None:
    (tmp_path / "failing-seeds.txt").write_text("5\n")
    options = ["--seeds", "1", "--first-seed", "3", "--time-limit", "15"]
    done = run_chaos(tmp_path, SCENARIO, "simulation", *options)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["seed 5", "seed 3"]
    assert (tmp_path / "failing-seeds.txt").read_text() == ""
    title = (tmp_path / "summary.md").read_text().splitlines()[0]
    assert title.endswith("0 invalid, 0 unknown, 0 crashed of 2 seeds")
    for seed in (3, 5):
        kept = {file.name for file in (tmp_path / f"seed-{seed}").iterdir()}
        assert {"report.html", "junit.xml", "results.json", "plan.yaml"} <= kept
    assert not (tmp_path / "store").exists()


def run_chaos(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments, "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
