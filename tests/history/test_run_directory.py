"""Run directories: created whole, opened only when they are ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.history.errors import (
    DamagedHistoryError,
    ForeignHistoryError,
    HistoryError,
    MissingHistoryError,
)
from nemesis.history.run_directory import RunDirectory, RunInfo, write_atomically


def info() -> RunInfo:
    return RunInfo(scenario="partition-controller", seed=7, plan=[{"at_s": 3, "fault": "pause"}])


def test_a_created_run_can_be_opened_through_latest(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, info())
    opened = RunDirectory.open(tmp_path / "latest")
    assert opened.path == run.path.resolve()
    read = opened.read_info()
    assert (read.scenario, read.seed, read.plan) == (
        "partition-controller",
        7,
        [{"at_s": 3, "fault": "pause"}],
    )
    assert read.started_at.endswith("+00:00")
    assert run.raw.is_dir()
    assert run.logs.is_dir()


def test_two_runs_in_one_second_get_two_directories(tmp_path: Path) -> None:
    paths = {RunDirectory.create(tmp_path, info()).path for _ in range(3)}
    assert len(paths) == 3


def test_latest_is_not_replaced_when_it_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "latest").write_text("mine")
    RunDirectory.create(tmp_path, info())
    assert (tmp_path / "latest").read_text() == "mine"


def test_a_run_that_did_not_begin_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "store"
    RunDirectory.create(store, info()).discard()
    assert list(tmp_path.iterdir()) == []
    runs = [RunDirectory.create(store, info()) for _ in range(3)]
    runs.pop().discard()
    assert (store / "latest").resolve() == runs[-1].path
    runs[0].discard()
    assert (store / "latest").resolve() == runs[-1].path
    assert [run.name for run in (store / info().scenario).iterdir()] == [runs[-1].path.name]


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, MissingHistoryError, "has no run.json"),
        ("{", DamagedHistoryError, "not valid JSON"),
        ("[]", ForeignHistoryError, "not written by nemesis"),
        ('{"format": "other"}', ForeignHistoryError, "not written by nemesis"),
        ('{"format": "nemesis-run", "version": 99}', ForeignHistoryError, "version 99"),
        ('{"format": "nemesis-run", "version": 1, "scenario": 3}', DamagedHistoryError, "damaged"),
    ],
)
def test_what_is_not_a_run_gets_one_sentence_naming_it(
    tmp_path: Path, content: str | None, error: type[HistoryError], words: str
) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(error, match=words) as caught:
        RunDirectory.open(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_path_and_a_plain_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingHistoryError, match="no run at"):
        RunDirectory.open(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(ForeignHistoryError, match="is a file"):
        RunDirectory.open(tmp_path / "file")


def test_a_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.json"]
