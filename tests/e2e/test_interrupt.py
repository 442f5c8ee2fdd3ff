"""A run that is interrupted leaves nothing behind, and what it recorded can be judged."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from nemesis.support.errors import EXIT_CRASH
from tests.e2e.command import (
    SCENARIO,
    events,
    journal_names,
    latest,
    nemesis,
    processes_of,
    start_nemesis,
    wait_until,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

VERDICTS = {0, 2}
"""An interrupted run of the correct cluster is never invalid."""


def start_and_wait_for_a_fault(tmp_path: Path) -> subprocess.Popen[str]:
    harness = start_nemesis(
        tmp_path, "run", SCENARIO, "--seed", "5", "--faults", "pause,kill,partition"
    )

    def is_broken() -> bool:
        assert harness.poll() is None, harness.communicate()
        applied = [e for e in events(latest(tmp_path), "nemesis") if e["kind"] == "fault-applied"]
        return bool(applied)

    wait_until(is_broken, "a fault")
    return harness


def test_ctrl_c_stops_everything_and_says_how_to_judge_it(tmp_path: Path) -> None:
    harness = start_and_wait_for_a_fault(tmp_path)
    names = journal_names(tmp_path)
    assert processes_of(names)
    harness.send_signal(signal.SIGINT)
    _, said = harness.communicate(timeout=40)
    assert harness.returncode == EXIT_CRASH
    run = latest(tmp_path).resolve()
    assert f"`nemesis check {run.relative_to(tmp_path)}` judges it" in said
    assert "Traceback" not in said
    assert processes_of(names) == []
    assert journal_names(tmp_path) == set()
    checked = nemesis(tmp_path, "check", str(run), "--engine", "inline")
    assert checked.returncode in VERDICTS, checked.stdout + checked.stderr
    assert (run / "report.html").stat().st_size > 0


def test_ctrl_c_while_a_simulated_run_is_judged_says_how_to_judge_it(tmp_path: Path) -> None:
    options = ("--runtime", "simulation", "--seed", "1", "--time-limit", "20")
    harness = start_nemesis(tmp_path, "run", SCENARIO, *options)
    assert harness.stderr is not None
    while "checking" not in harness.stderr.readline():
        assert harness.poll() is None
    harness.send_signal(signal.SIGINT)
    _, said = harness.communicate(timeout=60)
    assert harness.returncode == EXIT_CRASH
    run = latest(tmp_path).resolve()
    again = f"`nemesis check {run.relative_to(tmp_path)} --engine inline` judges it"
    assert said == f"nemesis: interrupted: what was recorded is kept, {again}\n"
    checked = nemesis(tmp_path, "check", str(run), "--engine", "inline")
    assert checked.returncode in VERDICTS, checked.stdout + checked.stderr
    assert not list(run.glob(".history-*"))


def test_ctrl_c_while_spark_checks_is_one_sentence_and_ends_spark(tmp_path: Path) -> None:
    options = ("--runtime", "simulation", "--seed", "1", "--time-limit", "20")
    ran = nemesis(tmp_path, "run", SCENARIO, *options)
    assert ran.returncode in VERDICTS, ran.stdout + ran.stderr
    harness = start_nemesis(tmp_path, "check", str(latest(tmp_path)))
    process = psutil.Process(harness.pid)
    wait_until(lambda: bool(workers_of(process)), "a Python worker of Spark")
    children = process.children(recursive=True)
    harness.send_signal(signal.SIGINT)
    harness.wait(timeout=60)
    # Now, not at the end of the pipes: Spark's processes hold those, and end by themselves a second later.
    assert [child for child in children if is_alive(child)] == []
    out, said = harness.communicate(timeout=60)
    assert (harness.returncode, out, said) == (EXIT_CRASH, "", "nemesis: interrupted\n")


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """The Python processes that Spark has started."""
    children = process.children(recursive=True)
    return [
        child for child in children if is_alive(child) and "worker_daemon" in str(child.cmdline())
    ]


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_after_sigkill_clean_ends_all_and_the_record_can_be_judged(tmp_path: Path) -> None:
    harness = start_and_wait_for_a_fault(tmp_path)
    names = journal_names(tmp_path)
    harness.kill()
    harness.communicate(timeout=40)
    assert processes_of(names), "the cluster should have outlived its harness"
    cleaned = nemesis(tmp_path, "clean")
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert processes_of(names) == []
    assert journal_names(tmp_path) == set()
    run = latest(tmp_path).resolve()
    assert list((run / "data").glob("zookeeper-*/version-2/log.*"))
    checked = nemesis(tmp_path, "check", str(run), "--engine", "inline")
    assert checked.returncode in VERDICTS, checked.stdout + checked.stderr
    assert list((run / "raw" / "zookeeper").glob("zookeeper-*/version-2/log.*"))
