"""Replay: what is read of a stored run, and what is said when it comes out differently."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from history.errors import DamagedHistoryError
from history.events import Event
from history.run_directory import RunDirectory, RunInfo
from nemesis.errors import UsageError
from nemesis.replay import rerun_arguments, stored_events
from nemesis.scenario import SIMULATION


def directory(tmp_path: Path, **info: object) -> RunDirectory:
    fields = {"scenario": "partition-controller", "seed": 7, **info}
    return RunDirectory.create(tmp_path / "store", RunInfo(**fields))  # type: ignore[arg-type]


def write(run: RunDirectory, file: str, *events: Event) -> None:
    run.raw_file(file).write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def event(process: str, time: int, **columns: object) -> Event:
    return Event(time=time, process=process, seq=0, kind="phase", **columns)  # type: ignore[arg-type]


def test_stored_events_come_in_the_order_of_time_and_zookeepers_last(tmp_path: Path) -> None:
    run = directory(tmp_path, runtime=SIMULATION)
    write(run, "broker-2", event("broker-2", 5), event("broker-2", 9))
    write(run, "broker-1", event("broker-1", 7))
    write(run, "zookeeper", event("zookeeper", -1, zxid=1), event("zookeeper", -1, zxid=2))
    read = stored_events(run)
    assert [one.time for one in read] == [5, 7, 9, -1, -1]
    assert [one.zxid for one in read[-2:]] == [1, 2]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    run = directory(tmp_path, runtime=SIMULATION)
    run.raw_file("broker-1").write_text('{"time": 1, ')
    with pytest.raises(DamagedHistoryError, match=r"broker-1\.jsonl cannot be read"):
        stored_events(run)


def test_a_real_run_is_run_again_with_the_plan_that_lies_with_it(tmp_path: Path) -> None:
    run = directory(
        tmp_path, replay="nemesis run partition-controller --seed 7 --plan moved/away.yaml"
    )
    plan = run.path / "plan.yaml"
    plan.write_text("[]")
    assert rerun_arguments(run) == [
        *("run", "partition-controller", "--seed", "7", "--plan", str(plan))
    ]


@pytest.mark.parametrize("stored", ["", "rm -rf /", "nemesis clean --plan x", "nemesis run x", '"'])
def test_a_run_that_names_no_run_is_not_repeated(tmp_path: Path, stored: str) -> None:
    run = directory(tmp_path, replay=stored)
    (run.path / "plan.yaml").write_text("[]")
    with pytest.raises(UsageError, match="does not say how the run is repeated"):
        rerun_arguments(run)
