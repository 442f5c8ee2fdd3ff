"""Exploring as a user does: findings are kept and replay exactly, crashes are told, Ctrl-C leaves nobody behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.command import SCENARIO, environment, nemesis, start_nemesis, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SHORT = ("--time-limit", "20")
TIMEOUT_S = 600.0


def workers_of(pid: int) -> list[psutil.Process]:
    workers = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.Error):  # it may end while it is looked at
            if any("spawn_main" in argument for argument in child.cmdline()):
                workers.append(child)
    return workers


@pytest.fixture(scope="module")
def explored(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    directory = tmp_path_factory.mktemp("explored")
    options = ["--mutant", "hw-follows-leader-leo", "--seeds", "2", "--jobs", "2", *SHORT]
    ran = nemesis(
        directory,
        *("explore", SCENARIO, *options, "--real-codec-every", "2", "--json"),
        timeout_s=TIMEOUT_S,
    )
    return directory, ran


def kept_run(explored: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    _, ran = explored
    findings = {finding["property"]: finding for finding in json.loads(ran.stdout)["findings"]}
    return Path(min(findings["hw-bounded"]["runs"].values()))


def replay(directory: Path, run: Path, hash_seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nemesis", "replay", str(run), "--json"],
        cwd=directory,
        env={**environment(directory), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_a_planted_bug_is_found_and_the_codecs_agree(
    explored: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, ran = explored
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    assert report["verdict"] == "invalid"
    assert report["seeds"] == {"asked": 2, "done": 2, "crashed": 0}
    assert report["codec"] == {"compared": 1, "mismatches": []}
    assert report["coverage"]["runs"] == 2
    assert "hw-bounded" in {finding["property"] for finding in report["findings"]}


def test_a_kept_run_replays_exactly_in_another_interpreter(
    explored: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, run = explored[0], kept_run(explored)
    ran = replay(directory, run, "12345")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    stored = json.loads((run / "run.json").read_text())
    assert report["is_identical"]
    assert report["trace_hash"] == stored["simulation"]["trace_hash"]
    assert report["verdict"] == "invalid"


def test_a_run_whose_record_says_something_else_is_told_to_differ(
    explored: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, run = explored[0], kept_run(explored)
    info = json.loads((run / "run.json").read_text())
    events = (run / "raw" / "broker-2.jsonl").read_text().splitlines()
    events[10] = json.dumps({**json.loads(events[10]), "node": 9})
    try:
        changed = {**info, "simulation": {**info["simulation"], "trace_hash": "0" * 32}}
        (run / "run.json").write_text(json.dumps(changed))
        (run / "raw" / "broker-2.jsonl").write_text("\n".join(events) + "\n")
        ran = replay(directory, run, "0")
    finally:
        (run / "run.json").write_text(json.dumps(info))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    report = json.loads(ran.stdout)
    assert not report["is_identical"]
    assert "differs in node" in report["difference"]
    assert report["compared"] > 10


def test_a_worker_that_is_killed_costs_its_seed_and_no_verdict(tmp_path: Path) -> None:
    options = ("--seeds", "1", "--real-codec-every", "0", *SHORT, "--json")
    process = start_nemesis(tmp_path, "explore", SCENARIO, *options)
    wait_until(lambda: len(workers_of(process.pid)) == 1, "a worker")
    workers_of(process.pid)[0].kill()
    said, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 255, said
    report = json.loads(said)
    crashed = [(crash["seed"], crash["reason"]) for crash in report["crashed"]]
    assert crashed == [(1, "its process was ended by SIGKILL")]
    assert report["verdict"] == "unknown"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_prints_what_there_is_and_ends_the_workers(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = start_nemesis(tmp_path, "explore", SCENARIO, "--seeds", "50", "--jobs", "2")
    wait_until(lambda: len(workers_of(process.pid)) == 2, "two workers")
    workers = workers_of(process.pid)
    os.kill(process.pid, number)
    said, errors = process.communicate(timeout=60.0)
    assert process.returncode == 255, errors
    assert "0 of 50 seeds" in said
    assert said.splitlines()[-1].startswith("interrupted; so far unknown")
    assert "Traceback" not in errors
    assert not [worker for worker in workers if worker.is_running()]
