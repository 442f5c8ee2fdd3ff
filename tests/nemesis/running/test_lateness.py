"""What a run records of its own lateness and of the machine's load."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.running import lateness
from nemesis.running.lateness import machine_load, trace_lateness

STAT = "cpu  100 10 20 5000 999 3 4 5 77 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
TICKS = 100 + 10 + 20 + 3 + 4 + 5


def proc(directory: Path, **waited_us: int) -> Path:
    (directory / "stat").write_text(STAT)
    (directory / "pressure").mkdir()
    for name, total in waited_us.items():
        some = f"some avg10=1.00 avg60=2.00 avg300=3.00 total={total}\n"
        (directory / "pressure" / name).write_text(f"{some}full avg10=0.00 total=7777777\n")
    return directory


def test_computing_and_waiting_tasks_are_added(tmp_path: Path) -> None:
    expected_ms = 1000 * TICKS / os.sysconf("SC_CLK_TCK") + 2 + 3 + 4
    files = proc(tmp_path, cpu=2_000, io=3_000, memory=4_000)
    assert machine_load(files) == pytest.approx(expected_ms)


def test_a_machine_that_does_not_say_everything_is_unknown(tmp_path: Path) -> None:
    assert machine_load(tmp_path) is None
    assert machine_load(proc(tmp_path, cpu=1, io=2)) is None


def test_a_load_that_cannot_be_read_for_a_moment_is_in_the_next_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lateness, "REPORT_INTERVAL_S", 0.0)
    loads = iter([0.0, 10.0, None, 45.0])
    lines: list[bytes] = []

    def load() -> float | None:
        try:
            return next(loads)
        except StopIteration:
            raise asyncio.CancelledError from None

    recorder = Recorder(lines.append, process="harness", clock=lambda: 0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(trace_lateness(recorder, load, 0.001))
    events = map(msgspec.json.decode, lines)
    reported = [event["duration_ms"] for event in events if event["kind"] == Kind.MACHINE_LOAD]
    assert reported == [10, 35]


def test_this_machine_works_while_we_compute() -> None:
    before = machine_load()
    if before is None:
        pytest.skip("this kernel does not state its pressure (/proc/pressure)")
    ticks_before = os.times().user
    while os.times().user - ticks_before < 0.1:
        pass
    after = machine_load()
    assert after is not None
    assert after - before >= 80
