"""Ctrl-C while Spark works: one ``KeyboardInterrupt``, no stack trace of py4j's, and nothing of Spark's stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from nemesis.history.spark import JVM_MARKER

START_TIMEOUT_S = 60.0
PROGRAM = """
import threading, time
from pathlib import Path
from nemesis.history.spark import context, kill, run_all

def slow(_):
    Path({at_work!r}).touch()
    time.sleep(60)

{start}
try:
    run_all(context(), slow, [0])
except KeyboardInterrupt:
    kill()
    print("interrupted")
"""
BESIDE = "starting = threading.Thread(target=context); starting.start(); starting.join()"


@pytest.mark.e2e
@pytest.mark.parametrize("start", ["context()", BESIDE], ids=["here", "in another thread"])
def test_ctrl_c_is_one_keyboard_interrupt_and_ends_spark(tmp_path: Path, start: str) -> None:
    at_work = tmp_path / "at work"
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(start=start, at_work=str(at_work))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + START_TIMEOUT_S
    while not at_work.exists():
        assert program.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sparks = [
        process
        for process in psutil.Process(program.pid).children(recursive=True)
        if is_running(process) and JVM_MARKER in process.environ()
    ]
    assert any("java" in process.name() for process in sparks)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=30)
    assert out == "interrupted\n"
    assert "Traceback" not in err
    assert program.returncode == 0
    assert [process for process in sparks if is_running(process)] == []


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
