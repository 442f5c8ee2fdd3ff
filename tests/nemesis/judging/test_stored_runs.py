"""A check repeated years later: by a version with other columns, on a run of which not everything is left."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from benchmarks.generate import write
from nemesis.checkers import recorded
from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.cli.app import call
from nemesis.history import older_formats
from nemesis.history.errors import ForeignHistoryError, MissingHistoryError
from nemesis.history.ingest import ingest
from nemesis.history.manifest import MANIFEST, read_manifest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.schema import FORMAT_VERSION
from nemesis.history.vocabulary.checking import Vocabulary
from nemesis.judging import judge
from tests.checkers.honest_cluster import NODES
from tests.checkers.honest_histories import honest_history
from tests.nemesis.judging.archives import archived

NEW_COLUMN = "key"
"""Format 1 had no such column."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Outcome]:
    run = write(tmp_path_factory.mktemp("store"), 2000)
    return run, judge.judge(run, engine="inline")


@pytest.fixture
def run(judged: tuple[RunDirectory, Outcome], tmp_path: Path) -> RunDirectory:
    return RunDirectory(Path(shutil.copytree(judged[0].path, tmp_path / "run")))


@pytest.fixture
def expected(judged: tuple[RunDirectory, Outcome]) -> object:
    return told(judged[1])


def told(outcome: Outcome) -> object:
    return outcome.verdict, outcome.events, outcome.results, outcome.problems


def fingerprint(directory: Path) -> dict[str, str]:
    files = [file for file in sorted(directory.rglob("*")) if file.is_file()]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def make_old(run: RunDirectory) -> None:
    """Turn ``history/`` into one of a format that nothing reads any more."""
    for file in run.history.glob("*.parquet"):
        rows = pq.read_table(file)
        pq.write_table(rows.drop_columns([NEW_COLUMN]), file)
    older = msgspec.structs.replace(read_manifest(run.history), version=1)
    (run.history / MANIFEST).write_bytes(msgspec.json.encode(older))


def each_line(run: RunDirectory, change: Any) -> None:
    for file in run.raw.glob("*.jsonl"):
        lines = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
        file.write_bytes(b"".join(msgspec.json.encode(change(line)) + b"\n" for line in lines))


def as_judged(outcome: Outcome, of: Outcome) -> dict[str, tuple[Verdict, int, int]]:
    """Verdict, how much was checked and the number of findings, of each property that ``of`` has."""
    known = {result.property for result in of.results}
    return {
        result.property: (result.verdict, result.checked, result.finding_count)
        for result in outcome.results
        if result.property in known
    }


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_run_of_an_older_version_is_judged_as_it_was_then(tmp_path: Path, version: int) -> None:
    run = archived(version, tmp_path)
    then = judge.read_outcome(run)
    before = fingerprint(run.raw)
    now = judge.judge(run, engine="inline")
    assert fingerprint(run.raw) == before
    assert len(then.results) > 25
    assert now.verdict == then.verdict
    assert set(now.not_recorded) >= {"control-requests-applied"}
    assert set(now.not_recorded).isdisjoint({"generation-grows", "one-quorum-leader"})
    assert as_judged(now, then) == as_judged(then, then)
    assert read_manifest(run.history).version == FORMAT_VERSION


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_run_of_an_older_version_is_judged_without_its_raw_files(
    tmp_path: Path, version: int
) -> None:
    run = archived(version, tmp_path)
    then, before = judge.read_outcome(run), fingerprint(run.history)
    shutil.rmtree(run.raw)
    assert as_judged(judge.judge(run, engine="inline"), then) == as_judged(then, then)
    assert fingerprint(run.history) == before
    assert read_manifest(run.history).version == version


def test_the_events_of_an_older_version_have_the_columns_of_their_kinds(tmp_path: Path) -> None:
    run = archived(3, tmp_path)
    ingest(run)
    vocabulary, rows = Vocabulary(), open_history(run.history).table().to_pylist()
    assert len(rows) > 5000
    for row in rows:
        vocabulary.check({name: value for name, value in row.items() if value is not None})


def test_a_history_of_an_older_format_is_made_again_and_raw_files_stay(
    run: RunDirectory, expected: object
) -> None:
    make_old(run)
    with pytest.raises(ForeignHistoryError, match="format version 1"):
        open_history(run.history)
    before = fingerprint(run.raw)
    assert told(judge.judge(run, engine="inline")) == expected
    assert fingerprint(run.raw) == before
    assert read_manifest(run.history).version == FORMAT_VERSION
    assert NEW_COLUMN in open_history(run.history).table().column_names


def test_lines_that_lack_newer_columns_convict_nobody(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, RunInfo(scenario="old", seed=0, zookeepers=1))
    lines: dict[str, list[bytes]] = {}
    for event in honest_history([(action, node) for action in (0, 3, 4, 2, 1) for node in NODES]):
        older = msgspec.structs.replace(event, isr_epochs=None, key=None)
        lines.setdefault(event.process, []).append(msgspec.json.encode(older) + b"\n")
    for process, written in lines.items():
        run.raw_file(process).write_bytes(b"".join(written))
    outcome = judge.judge(run, engine="inline")
    assert outcome.problems == ()
    assert {result.verdict for result in outcome.results} == {Verdict.VALID, Verdict.UNKNOWN}


def test_lines_with_a_column_that_is_no_more_are_told_and_make_it_unknown(
    run: RunDirectory, expected: object
) -> None:
    each_line(run, lambda line: {**line, "abolished": 1} if line["kind"] == "phase" else line)
    outcome = judge.judge(run, engine="inline")
    assert outcome.verdict is Verdict.UNKNOWN
    assert any("unknown field `abolished`" in problem for problem in outcome.problems)


def test_a_run_whose_raw_files_are_gone_is_judged_from_its_history(
    run: RunDirectory, expected: object
) -> None:
    shutil.rmtree(run.raw)
    before = fingerprint(run.history)
    assert told(judge.judge(run, engine="inline")) == expected
    assert fingerprint(run.history) == before
    assert run.report_file.stat().st_size > 0


def test_when_neither_is_possible_a_sentence_says_so_and_nothing_is_touched(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    make_old(run)
    shutil.rmtree(run.raw)
    before = fingerprint(run.path)
    assert call(["check", str(run.path), "--engine", "inline"]) == 254
    said = capsys.readouterr().err
    assert f"{MANIFEST} has format version 1, not {FORMAT_VERSION}, and " in said
    assert "raw holds no events to make it from again" in said
    assert fingerprint(run.path) == before


def test_a_run_that_recorded_nothing_is_no_run_that_lost_its_files(run: RunDirectory) -> None:
    shutil.rmtree(run.raw)
    shutil.rmtree(run.history)
    with pytest.raises(MissingHistoryError, match="nothing was recorded"):
        judge.judge(run, engine="inline")


def test_what_an_older_version_did_not_note_of_a_run_has_a_default(
    run: RunDirectory, judged: tuple[RunDirectory, Outcome]
) -> None:
    """Without a format of events it is taken for an old run, which newer properties do not judge."""
    info = msgspec.json.decode(run.info_file.read_bytes())
    known = {"format", "version", "scenario", "seed", "zookeepers"}
    run.info_file.write_bytes(msgspec.json.encode({k: info[k] for k in known} | {"gone": 1}))
    expected = judge.only(judged[1], recorded(older_formats.LAST))
    outcome = judge.judge(run, engine="inline")
    assert (outcome.verdict, outcome.results) == (expected.verdict, expected.results)


def test_a_check_of_few_properties_keeps_the_results_of_the_others(run: RunDirectory) -> None:
    whole = judge.judge(run, engine="inline")
    some = judge.judge(run, checkers=["hw-bounded"], engine="inline")
    assert [result.property for result in some.results] == ["hw-bounded"]
    kept = judge.read_outcome(run)
    assert [result.property for result in kept.results] == [
        result.property for result in whole.results
    ]
    assert kept.verdict is whole.verdict


def test_a_check_of_few_properties_reports_that_others_are_kept(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = judge.judge(run, engine="inline")
    options = ["--engine", "inline", "--checkers", "hw-bounded,hw-grows"]
    call(["check", str(run.path), *options])
    printed = capsys.readouterr()
    kept = len(outcome.results) - 2
    assert f"the results of {kept} other properties are kept: with them the verdict" in printed.err
    assert f"report.html is {outcome.verdict.value}\n" in printed.err
    run.results_file.unlink()
    call(["check", str(run.path), *options])
    assert capsys.readouterr().err == ""
