"""Bad input to explore, replay and mutants: one sentence, exit code 254, nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.support.errors import EXIT_USAGE
from nemesis.support.runtime_names import SIMULATION

SCENARIO = "partition-controller"


@pytest.fixture(autouse=True)
def _scratch_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = call(list(arguments))
    captured = capsys.readouterr()
    assert code == EXIT_USAGE, captured.err
    assert captured.out == ""
    assert captured.err.startswith("nemesis: ")
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explore"], ["SCENARIO"]),
        (["explore", "no-such"], ["'no-such'", SCENARIO]),
        (["explore", SCENARIO, "--seeds", "0"], ["--seeds is 0", "1 to"]),
        (["explore", SCENARIO, "--seeds", "many"], ["--seeds", "'many' is not a whole number"]),
        (["explore", SCENARIO, "--jobs", "x"], ["--jobs", "'x' is not a whole number"]),
        (["explore", SCENARIO, "--jobs", "0"], ["--jobs is 0", "1 to"]),
        (["explore", SCENARIO, "--first-seed", "-1"], ["--first-seed is -1"]),
        (["explore", SCENARIO, "--first-seed", str(2**63 - 1)], ["--first-seed is"]),
        (["explore", SCENARIO, "--real-codec-every", "-1"], ["--real-codec-every is -1"]),
        (["explore", SCENARIO, "--mutant", "gremlin"], ["'gremlin'", "allowed are"]),
        (["explore", SCENARIO, "--faults", "flood"], ["'flood'", "allowed are"]),
        (["explore", SCENARIO, "--checkers", "vibes"], ["'vibes'", "allowed are"]),
        (["explore", SCENARIO, "--faults", "kill", "--time-limit", "15"], ["no fault fits"]),
        (["explore", SCENARIO, "--time-limit", "nan"], ["--time-limit is nan"]),
        (["explore", SCENARIO, "--store", "/dev/null"], ["/dev/null is a file"]),
        (["explore", SCENARIO, "--guided"], ["--guided", "--corpus DIR is missing"]),
        (["explore", SCENARIO, "--corpus", "nights"], ["--guided is missing"]),
        (["explore", SCENARIO, "--guided", "--corpus", "/dev/null"], ["/dev/null", "a file"]),
        (["replay"], ["RUN"]),
        (["replay", "nowhere"], ["there is no run at nowhere"]),
        (["mutants", "--seeds", "-1"], ["--seeds is -1"]),
        (["mutants", "--mutant", "gremlin"], ["'gremlin'"]),
        (["mutants", "--against-blind", "0"], ["--against-blind is 0"]),
        (
            ["mutants", "--against-blind", "1", "--page", "no/a.md"],
            ["--page is no/a.md", "got no file"],
        ),
        (["mutants", "--against-blind", "1", "--generated", "2"], ["exclude each other"]),
        (["mutants", "--against-blind", "1"], ["expected --mutant A,B"]),
        (["mutants", "--against-blind", "1", "--mutant", "isr-emptied,x"], ["'x'", "allowed are"]),
        (["mutants", "--page", "no/where.md"], ["no/where.md", "no directory no"]),
        (["mutants", "--shrink-runs", "-1"], ["--shrink-runs is -1"]),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    said = refused(capsys, *arguments)
    assert all(word in said for word in words), said
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"runtime": SIMULATION}, ["run.json is damaged"]),
        ({"runtime": "local", "replay": "rm x"}, ["does not say how the run is repeated"]),
    ],
)
def test_a_run_that_cannot_be_repeated_is_refused(
    capsys: pytest.CaptureFixture[str], info: dict[str, Any], words: list[str]
) -> None:
    run = RunDirectory.create(Path("store"), RunInfo(scenario=SCENARIO, seed=1, **info))
    said = refused(capsys, "replay", str(run.path))
    assert all(word in said for word in words), said


def test_a_real_run_is_run_again_by_its_own_command(capsys: pytest.CaptureFixture[str]) -> None:
    info = RunInfo(
        scenario=SCENARIO, seed=1, replay="nemesis run no-such --seed 1 --plan gone.yaml"
    )
    run = RunDirectory.create(Path("store"), info)
    (run.path / "plan.yaml").write_text("[]")
    assert call(["replay", str(run.path)]) == EXIT_USAGE
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "a real run cannot be repeated exactly: the same plan is run again"
    assert said[1].startswith("nemesis: unknown scenario 'no-such'")
