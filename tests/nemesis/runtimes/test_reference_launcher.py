"""A broker's process plants the bug that it is given, before it reads its configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nemesis.mutants.bug_files import BUG, write_bug


def launch(folder: Path, mutant: str) -> subprocess.CompletedProcess[str]:
    """Start a broker whose configuration does not exist."""
    words = ["-m", "nemesis.runtimes.reference_launcher", str(folder / "gone.json")]
    command = [sys.executable, *words, "--mutant", mutant]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_file_is_planted_before_the_broker_starts(tmp_path: Path) -> None:
    traced = BUG.replace("(correct):\n", "(correct):\n    print('made')\n")
    ran = launch(tmp_path, str(write_bug(tmp_path, traced)))
    assert "made" in ran.stdout
    assert "gone.json" in ran.stderr


@pytest.mark.parametrize(("text", "words"), [("1 / 0", "ZeroDivisionError"), ("", "got none")])
def test_a_wrong_file_ends_the_process(tmp_path: Path, text: str, words: str) -> None:
    ran = launch(tmp_path, str(write_bug(tmp_path, text)))
    assert ran.returncode != 0
    assert words in ran.stderr
    assert "gone.json" not in ran.stderr
