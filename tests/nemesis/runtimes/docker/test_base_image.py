"""Which base is chosen, and that a script that makes one leaves nothing when it is broken off."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.runtimes.docker import base_image
from nemesis.support.errors import MissingRequirement


def script_in(folder: Path, last: str) -> Path:
    """A script that makes a directory, takes it away at its end, and does one thing in between."""
    script = folder / "script.sh"
    made = folder / "made"
    script.write_text(f"#!/bin/bash\nmkdir {made}\ntrap 'rmdir {made}' EXIT\n{last}\n")
    script.chmod(0o755)
    return script


def test_the_default_base_is_the_dockerfiles() -> None:
    assert base_image.default_base() == "python:3.11-slim"


def test_another_script_makes_another_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = base_image.own_base()
    assert before.startswith("nemesis-base:")
    monkeypatch.setattr(base_image, "SCRIPT", script_in(tmp_path, "true"))
    assert base_image.own_base() != before


def test_what_a_script_says_and_how_it_ended_is_told(tmp_path: Path) -> None:
    script = script_in(tmp_path, 'test "$1" = a:b && echo "no space left" >&2 && exit 7')
    assert base_image._run(script, "a:b") == (7, "no space left\n")


@pytest.mark.parametrize("stop", [base_image.SCRIPT_TIMEOUT_S, 0.3])
def test_a_script_that_is_broken_off_cleans_up(
    stop: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_image, "SCRIPT_TIMEOUT_S", stop)
    last = "sleep 100" if stop < 1 else "exit 0"
    code, _ = base_image._run(script_in(tmp_path, last), "a:b")
    assert code == (base_image.TIMED_OUT if stop < 1 else 0)
    assert not (tmp_path / "made").exists()


def test_a_script_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match=r"absent.sh cannot be run: No such file"):
        base_image._run(tmp_path / "absent.sh", "a:b")
