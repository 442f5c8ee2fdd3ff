"""``--mutant FILE.py`` on the command line: runs carry the bug, are stored with it, and are repeated from the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory
from tests.nemesis.mutants.bug_files import NAME, write_bug

SHORT = ("--time-limit", "20")


@pytest.fixture
def bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_bug(tmp_path)


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_an_exploration_stores_a_run_that_is_repeated_from_the_store_alone(
    bug: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--seeds", "1", "--jobs", "1", *SHORT, "--real-codec-every", "0", "--json"]
    assert call(["explore", "partition-controller", "--mutant", bug.name, *options]) == 1
    explored = said(capsys)
    assert (explored["mutant"], explored["mutant_file"]) == (NAME, "bug.py")
    findings = {finding["property"]: finding for finding in explored["findings"]}
    run = RunDirectory.open(Path(findings["leader-epoch-grows"]["runs"]["1"]))
    bug.write_text("1 / 0")
    assert call(["replay", str(run.path), "--json"]) == 0
    assert said(capsys)["is_identical"]
    assert f"planted bug <b>{NAME}</b> from the file bug.py" in run.report_file.read_text()
    assert '<property name="mutant file" value="bug.py"' in run.junit_file.read_text()
    run.mutant_file.unlink()
    assert call(["shrink", str(run.path)]) == 254
    assert "mutant.py: expected a file with a mutant, got No such" in capsys.readouterr().err


def test_the_search_for_one_bug_states_its_file(
    bug: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--seeds", "1", "--jobs", "1", *SHORT, "--shrink-runs", "0"]
    assert call(["mutants", "--mutant", bug.name, *options]) == 0
    assert f"{NAME} (from bug.py): caught by leader-epoch-grows" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["run"], ["explore"]])
def test_a_file_that_does_not_exist_is_refused_in_one_sentence(
    bug: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bug.unlink()
    assert call([*command, "partition-controller", "--mutant", bug.name]) == 254
    error = capsys.readouterr().err
    assert error.startswith("nemesis: bug.py: expected a file with a mutant, got No such file")
    assert error.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []
