"""``nemesis shrink`` on the command line: what it refuses, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.searching.simulate import store_result
from tests.nemesis.searching.shrink.simulated_bug import MUTANT, begun, spec


@pytest.fixture
def real_run(tmp_path: Path) -> Path:
    return RunDirectory.create(tmp_path, RunInfo(scenario="partition-controller", seed=1)).path


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--runs", "0"], "--runs is 0: allowed are 1 to 1000000"),
        (["--seconds", "-3"], "--seconds is -3: allowed are more than 0, up to 86400"),
        (["--seconds", "soon"], "'soon' is not a number"),
        (["--jobs", "0"], "--jobs is 0: allowed are 1 to 256"),
        (["--property", "magic"], "unknown property 'magic': allowed are "),
        ([], "is a run on the runtime local, not a simulated one"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    real_run: Path, options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["shrink", str(real_run), *options]) == 254
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert said.err.count("\n") == 1


def test_a_run_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["shrink", "nowhere"]) == 254
    assert "there is no run at nowhere" in capsys.readouterr().err


def test_it_says_what_it_kept_how_much_smaller_it_is_and_how_to_replay_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = store_result(begun(), spec(MUTANT), tmp_path, ["nemesis", "run"]).path
    options = ["--runs", "2", "--jobs", "1", "--store", str(tmp_path / "shrunk"), "--json"]
    assert call(["shrink", str(run), *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["property"] == "stale-controller-fenced"
    assert (said["before"]["faults"], said["after"]["faults"]) == (3, 2)
    assert said["stopped_by"] == "2 runs"
    assert said["replay"] == f"nemesis replay {said['run']}"
    assert Path(said["report"]).is_file()
    assert Path(said["run"]).is_relative_to(tmp_path / "shrunk")


def test_when_nothing_gets_smaller_no_run_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before anything was found."""
    run = store_result(begun(), spec(MUTANT), tmp_path, ["nemesis", "run"]).path

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nemesis.searching.shrink.shrinker.minimise", interrupted)
    options = ["--runs", "1", "--jobs", "1", "--store", str(tmp_path / "shrunk")]
    assert call(["shrink", str(run), *options]) == 255
    said = capsys.readouterr().out
    assert "the search ended after an interrupt" in said
    assert said.splitlines()[-1] == "nothing smaller was found, so no run was stored"
    assert not (tmp_path / "shrunk").exists()
