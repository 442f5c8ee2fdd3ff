"""``nemesis mutants`` on the command line: options that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.cli.app import call


def test_a_planted_bug_and_generated_mutants_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["mutants", "--generated", "3", "--mutant", "new-leader-truncates"]) == 254
    error = capsys.readouterr().err
    assert error.startswith("nemesis: --generated and --mutant exclude each other")
    assert error.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []
