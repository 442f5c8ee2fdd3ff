"""The same seeds give the same traces, in fresh interpreters with other hash seeds and another number of workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import SCENARIO, environment

SHORT = ("--time-limit", "20", "--real-codec-every", "0")


def hashes(directory: Path, seeds: int, *, hash_seed: str, jobs: int) -> dict[str, str]:
    """Trace hashes by seed; ``first-seed`` is 1."""
    options = ["--seeds", str(seeds), "--jobs", str(jobs), *SHORT, "--json"]
    ran = subprocess.run(
        [sys.executable, "-m", "nemesis", "explore", SCENARIO, *options],
        cwd=directory,
        env={**environment(directory), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 2), ran.stdout + ran.stderr
    by_seed: dict[str, str] = json.loads(ran.stdout)["hashes"]
    return by_seed


def compare(directory: Path, seeds: int) -> None:
    first = hashes(directory, seeds, hash_seed="1", jobs=2)
    second = hashes(directory, seeds, hash_seed="2", jobs=max(1, len(os.sched_getaffinity(0)) - 1))
    assert len(first) == len(set(first.values())) == seeds
    assert first == second


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_four_seeds_give_the_same_traces_twice(tmp_path: Path) -> None:
    compare(tmp_path, 4)


@pytest.mark.e2e
@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_hundred_seeds_give_the_same_traces_twice(tmp_path: Path) -> None:
    compare(tmp_path, 100)
