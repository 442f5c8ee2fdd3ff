"""Replay: what is read of a stored run, and what is said when it comes out differently."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from nemesis.history.errors import DamagedHistoryError, MissingHistoryError
from nemesis.history.events import Event
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.running.simulated.specification import SimulationSpec
from nemesis.running.simulated.stored import read_spec
from nemesis.scenarios import scenario
from nemesis.searching.replay import EVENTS_GONE, replay, rerun_arguments, stored_events
from nemesis.searching.simulate import simulate, store_result
from nemesis.support.errors import UsageError
from nemesis.support.runtime_names import SIMULATION


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
    assert [item.time for item in read] == [5, 7, 9, -1, -1]
    assert [item.zxid for item in read[-2:]] == [1, 2]


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


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A simulated run without a fault and with few operations."""
    chosen = scenario.override(
        scenario.load("partition-controller"), runtime=SIMULATION, time_limit_s=15
    )
    begun = SimulationSpec(scenario=chosen, seed=1, plan=(), max_operations=2)
    return store_result(simulate(begun), begun, tmp_path_factory.mktemp("whole"), ["nemesis"])


def changed(run: RunDirectory, folder: Path, **values: object) -> RunDirectory:
    """A copy of the run whose ``run.json`` says something else; ``None`` leaves a value out."""
    path = folder / "run"
    shutil.copytree(run.path, path)
    info = {**json.loads(run.info_file.read_text()), **values}
    info = {name: value for name, value in info.items() if value is not None}
    (path / "run.json").write_text(json.dumps(info))
    return RunDirectory.open(path)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mutant": "gremlin"}, "unknown mutant 'gremlin': allowed are "),
        ({"checkers": ["vibes"]}, "unknown checker 'vibes': allowed are "),
        ({"plan": None}, "it has no plan"),
        ({"plan": [{"at_s": 1, "fault": "flood"}]}, "entry 1 has unknown fault 'flood'"),
        ({"config": {"brokers": "three"}}, r"`\$\.config\.brokers`"),
        ({"simulation": {}}, r"`deviation_rate` - at `\$\.simulation`"),
    ],
)
def test_a_damaged_order_is_refused_in_a_sentence_that_names_the_place(
    whole: RunDirectory, tmp_path: Path, values: dict[str, object], words: str
) -> None:
    with pytest.raises(DamagedHistoryError, match=rf"run\.json is damaged: .*{words}"):
        read_spec(changed(whole, tmp_path, **values))


def test_an_empty_plan_is_a_plan(whole: RunDirectory) -> None:
    spec, _ = read_spec(whole)
    assert spec.plan == ()


def test_without_its_events_a_run_that_differs_is_not_compared(
    whole: RunDirectory, tmp_path: Path
) -> None:
    reported = json.loads(whole.info_file.read_text())["simulation"]
    run = changed(whole, tmp_path, simulation={**reported, "trace_hash": "0" * 32})
    shutil.rmtree(run.raw)
    replayed = replay(run)
    assert (replayed.is_identical, replayed.compared) == (False, 0)
    assert replayed.difference == EVENTS_GONE


def test_without_hash_and_events_there_is_nothing_to_compare_with(
    whole: RunDirectory, tmp_path: Path
) -> None:
    reported = json.loads(whole.info_file.read_text())["simulation"]
    run = changed(whole, tmp_path, simulation={**reported, "trace_hash": None})
    shutil.rmtree(run.raw)
    with pytest.raises(MissingHistoryError, match="nothing to compare with"):
        replay(run)
