"""Calling ``nemesis`` as a user does, in a place of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from nemesis.support.journal import MARKER, read_journals

SCENARIO = "partition-controller"


def environment(tmp_path: Path) -> dict[str, str]:
    """Journals and leases go to the test's own directory, so that ``clean`` touches nobody else's."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(exist_ok=True)
    return {**os.environ, "NEMESIS_RUNTIME_DIR": str(runtime)}


def nemesis(
    tmp_path: Path, *arguments: str, timeout_s: float = 240.0
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "nemesis", *arguments],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def start_nemesis(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command; the caller ends it."""
    return subprocess.Popen(
        [sys.executable, "-m", "nemesis", *arguments],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool], event: str, *, within_s: float = 60.0) -> None:
    """Poll with a deadline; fails the test naming what did not happen."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"{event} did not happen in {within_s:g} s"
        time.sleep(0.05)


def events(run: Path, file: str) -> list[dict[str, Any]]:
    """The recorded events of a file of ``raw/``; a torn last line is left out."""
    path = run / "raw" / f"{file}.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def latest(tmp_path: Path) -> Path:
    return tmp_path / "store" / "latest"


def journal_names(tmp_path: Path) -> set[str]:
    return {path.stem for path, _ in read_journals(tmp_path / "runtime")}


def processes_of(names: set[str]) -> list[psutil.Process]:
    """Every process that carries one of these journals' names."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) in names:
                processes.append(process)
        except (psutil.Error, OSError):
            continue
    return processes
