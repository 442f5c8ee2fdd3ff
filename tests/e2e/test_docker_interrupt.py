"""A run in containers that is interrupted leaves nothing behind, and what it recorded can be judged."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from nemesis.support.errors import EXIT_CRASH
from tests.e2e.command import (
    SCENARIO,
    events,
    journal_names,
    latest,
    nemesis,
    start_nemesis,
    wait_until,
)
from tests.e2e.docker_machine import build_image, needs_docker, run_id_of, things

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True), needs_docker]

VERDICTS = {0, 2}
"""An interrupted run of the correct cluster is never invalid."""


@pytest.fixture(scope="module", autouse=True)
def _image() -> None:
    build_image()


def start_and_wait_for_a_partition(tmp_path: Path) -> subprocess.Popen[str]:
    options = ("--runtime", "docker", "--seed", "5", "--faults", "partition")
    harness = start_nemesis(tmp_path, "run", SCENARIO, *options)

    def is_broken() -> bool:
        assert harness.poll() is None, harness.communicate()
        return any(e["kind"] == "fault-applied" for e in events(latest(tmp_path), "nemesis"))

    try:
        wait_until(is_broken, "a partition")
    except BaseException:
        # It would outlive its test, and the next one would be blamed for it.
        harness.send_signal(signal.SIGINT)
        harness.communicate()
        raise
    return harness


def require_judged(tmp_path: Path, run: Path) -> None:
    assert {path.name for path in (run / "raw").glob("broker-*.jsonl")} == {
        f"broker-{number}.jsonl" for number in (1, 2, 3)
    }
    checked = nemesis(tmp_path, "check", str(run), "--engine", "inline")
    assert checked.returncode in VERDICTS, checked.stdout + checked.stderr
    assert "transaction log" not in checked.stdout


def test_ctrl_c_removes_everything_and_says_how_to_judge_it(tmp_path: Path) -> None:
    harness = start_and_wait_for_a_partition(tmp_path)
    run_id = run_id_of(latest(tmp_path))
    assert things(run_id)
    harness.send_signal(signal.SIGINT)
    _, said = harness.communicate(timeout=40)
    assert harness.returncode == EXIT_CRASH, said
    run = latest(tmp_path).resolve()
    assert f"`nemesis check {run.relative_to(tmp_path)}` judges it" in said
    assert "Traceback" not in said
    assert things(run_id) == []
    assert journal_names(tmp_path) == set()
    require_judged(tmp_path, run)


def test_after_sigkill_clean_removes_everything_and_the_record_can_be_judged(
    tmp_path: Path,
) -> None:
    harness = start_and_wait_for_a_partition(tmp_path)
    run_id = run_id_of(latest(tmp_path))
    harness.kill()
    harness.communicate(timeout=40)
    assert things(run_id), "the cluster should have outlived its harness"
    cleaned = nemesis(tmp_path, "clean")
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert things(run_id) == []
    assert journal_names(tmp_path) == set()
    require_judged(tmp_path, latest(tmp_path).resolve())
