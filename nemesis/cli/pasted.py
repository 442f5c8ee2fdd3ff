"""Commands that a person copies from the console: they start this program, and name files from this directory."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.run_directory import RunDirectory
from nemesis.support.paths import short

PROGRAM: Final = "nemesis"
CHECK: Final = "check"


def replay_of(run: RunDirectory) -> str:
    """Return the command that repeats the run, for a shell in the working directory; a history is judged again."""
    is_history = run.read_info().replay.split()[1:2] == [CHECK]
    return command([CHECK if is_history else "replay", short(run.path)])


def shrink_of(run: RunDirectory, outcome: Outcome) -> str:
    """Return the command that makes a broken simulated run smaller; empty for others."""
    info = run.read_info()
    if outcome.verdict is not Verdict.INVALID or info.shrunk or not info.simulation:
        return ""
    return command(["shrink", short(run.path)])


def command(arguments: Sequence[str]) -> str:
    """Return the arguments behind what starts this program from the shell."""
    return shlex.join([*_program(), *arguments])


def _program() -> list[str]:
    """Return the program as it was called, or shorter if the shell finds it."""
    on_path, called = shutil.which(PROGRAM), Path(sys.argv[0])
    if called.name == PROGRAM and os.access(called, os.X_OK):
        is_same = on_path is not None and called.samefile(on_path)
        return [PROGRAM if is_same else short(called)]
    return [sys.executable, "-m", PROGRAM] if on_path is None else [PROGRAM]
