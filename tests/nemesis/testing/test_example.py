"""The example of ``docs/testing.md`` finds its bug, and Hypothesis makes the plan small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def example() -> str:
    match = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    return match[1]


def run(code: str, where: Path) -> subprocess.CompletedProcess[str]:
    (where / "test_example.py").write_text(code)
    (where / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-seed=1", "test_example.py"]
    return subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=280, check=False
    )


def test_it_finds_the_planted_bug_with_one_plain_fault(tmp_path: Path) -> None:
    done = run(example(), tmp_path)
    assert done.returncode == 1, done.stdout
    assert "AssertionError: leader-epoch-grows: " in done.stdout
    plan = done.stdout.split("with the plan:")[1].split("Failing")[0]
    assert plan.count("fault:") == 1
    assert "target: controller" in plan


@pytest.mark.nightly
def test_without_the_bug_it_passes(tmp_path: Path) -> None:
    sound = example().replace('        mutant="leader-epoch-not-raised",\n', "")
    assert "mutant" not in sound
    done = run(sound, tmp_path)
    assert done.returncode == 0, done.stdout
