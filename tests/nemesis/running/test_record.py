"""How far a run has got, and how long each part of it took, is in its directory while it runs."""

from __future__ import annotations

from pathlib import Path

from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.running.record import NS, FileRecord


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> int:
        return round(self.now_s * NS)


def test_each_phase_takes_the_time_until_the_next_and_the_end_is_the_stop(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, RunInfo(scenario="s", seed=1))
    clock = Clock()
    record = FileRecord(run, clock)
    clock.now_s += 5
    for name, seconds in (("start", 2.5), ("faults", 40), ("end", 1.25)):
        record.phase(name)
        clock.now_s += seconds
    assert run.read_info().phases == ["start", "faults", "end"]
    assert run.read_info().durations_s == {"start": 2.5, "faults": 40}
    record.close()
    assert run.read_info().durations_s == {"start": 2.5, "faults": 40, "stop": 1.25}


def test_of_a_run_that_was_broken_off_the_last_phase_is_told_too(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, RunInfo(scenario="s", seed=1))
    clock = Clock()
    record = FileRecord(run, clock)
    record.phase("start")
    clock.now_s += 3
    record.close()
    assert run.read_info().durations_s == {"start": 3}
