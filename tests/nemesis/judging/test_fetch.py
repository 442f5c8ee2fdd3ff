"""Runs that lie in an object store: read where they are, over the wire of S3, their results kept here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow.fs
import pytest

from benchmarks.generate import write
from nemesis.checkers.framework.model import Outcome
from nemesis.cli.app import call
from nemesis.history.errors import DamagedHistoryError, ForeignHistoryError, MissingHistoryError
from nemesis.history.manifest import MANIFEST, Manifest, read_manifest
from nemesis.history.reader import open_history
from nemesis.history.remote import RemotePath, parse_location
from nemesis.history.run_directory import RunDirectory
from nemesis.history.stored_row_group import StoredRowGroup
from nemesis.judging import judge
from nemesis.judging.fetch import fetch
from tests.nemesis.judging.s3_server import CREDENTIALS, filesystem, s3_server

BUCKET = "bucket"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as where:
        yield where


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that was judged where it was run."""
    run = write(tmp_path_factory.mktemp("store"), 3000)
    judge.judge(run, engine="inline")
    return run


class Store:
    """A bucket."""

    def __init__(self, server: str) -> None:
        self.filesystem = filesystem(server)
        self.options = f"?scheme=http&region=us-east-1&endpoint_override={server}"
        self.filesystem.create_dir(BUCKET)

    def upload(self, run: RunDirectory, name: str, *, without: str = "") -> str:
        """Copy a run there, as a user does who keeps runs; return its URI."""
        for file in run.path.rglob("*"):
            inside = file.relative_to(run.path)
            if file.is_file() and inside.parts[0] != without:
                with self.filesystem.open_output_stream(f"{BUCKET}/{name}/{inside}") as target:
                    target.write(file.read_bytes())
        return f"s3://{BUCKET}/{name}{self.options}"

    def names(self) -> set[str]:
        everything = pyarrow.fs.FileSelector(BUCKET, recursive=True)
        return {result.path for result in self.filesystem.get_file_info(everything)}


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    store = Store(server)
    yield store
    store.filesystem.delete_dir_contents(BUCKET)


def remote(uri: str) -> RemotePath:
    location = parse_location(uri)
    assert isinstance(location, RemotePath)
    return location


def results(run: RunDirectory) -> object:
    outcome = msgspec.json.decode(run.results_file.read_bytes(), type=Outcome)
    return outcome.verdict, outcome.events, outcome.results


def test_check_reads_the_history_where_it_lies_and_keeps_results_here(
    bucket: Store, judged: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = bucket.upload(judged, "kept/20261122T000000Z", without="raw")
    before = bucket.names()
    store = tmp_path / "here"
    arguments = ["check", uri, "--engine", "inline", "--store", str(store), "--json"]
    assert call(arguments) == judge.read_outcome(judged).verdict.exit_code
    said = json.loads(capsys.readouterr().out)
    run = RunDirectory.open(store / "generated" / "20261122T000000Z")
    assert said["run"] == str(run.path)
    assert results(run) == results(judged)
    assert run.report_file.stat().st_size > 0
    assert [file.name for file in run.history.iterdir()] == [MANIFEST]
    assert bucket.names() == before
    # Where it lies is remembered: it is judged again like any other run.
    assert run.read_info().origin == uri
    again = ["check", str(run.path), "--engine", "inline", "--checkers", "hw-bounded"]
    assert call(again) == 0


def test_row_groups_are_read_where_they_lie(bucket: Store, judged: RunDirectory) -> None:
    there = remote(bucket.upload(judged, "kept/run"))
    history = open_history(there / "history")
    assert history.table().equals(open_history(judged.history).table())
    for group in history.row_groups:
        assert isinstance(group, StoredRowGroup)
        assert str(group.path) == f"s3://{BUCKET}/kept/run/history/{group.path.name}"


def test_a_history_of_another_version_is_made_again_from_the_raw_files(
    bucket: Store, judged: RunDirectory, tmp_path: Path
) -> None:
    uri = bucket.upload(judged, "old/run")
    older = msgspec.structs.replace(read_manifest(judged.history), version=1)
    with bucket.filesystem.open_output_stream(f"{BUCKET}/old/run/history/{MANIFEST}") as file:
        file.write(msgspec.json.encode(older))
    run = fetch(remote(uri), tmp_path)
    judge.judge(run, engine="inline")
    assert results(run) == results(judged)
    assert {file.name for file in run.raw.iterdir()} == {file.name for file in judged.raw.iterdir()}


def test_a_copy_has_the_directories_too(bucket: Store, tmp_path: Path) -> None:
    for name in ("a.jsonl", "zookeeper/zookeeper-1/version-2/log.1"):
        with bucket.filesystem.open_output_stream(f"{BUCKET}/raw/{name}") as file:
            file.write(name.encode())
    remote(f"s3://{BUCKET}/raw{bucket.options}").copy_to(tmp_path / "copy")
    files = [file for file in (tmp_path / "copy").rglob("*") if file.is_file()]
    assert {str(file.relative_to(tmp_path / "copy")): file.read_text() for file in files} == {
        name: name for name in ("a.jsonl", "zookeeper/zookeeper-1/version-2/log.1")
    }


def test_fetching_again_replaces_what_was_fetched_and_nothing_else(
    bucket: Store, judged: RunDirectory, tmp_path: Path
) -> None:
    first, second = (bucket.upload(judged, f"{where}/run") for where in "ab")
    runs = [fetch(remote(uri), tmp_path).path.name for uri in (first, second, first, second)]
    assert runs == ["run", "run-2", "run", "run-2"]
    assert sorted(path.name for path in (tmp_path / "generated").iterdir()) == ["run", "run-2"]
    assert [path.name for path in tmp_path.iterdir()] == ["generated"]


def test_what_cannot_be_fetched_is_one_sentence_and_leaves_nothing(
    bucket: Store, judged: RunDirectory, tmp_path: Path
) -> None:
    uri = bucket.upload(judged, "run", without="raw")
    for file in ("run.json", f"history/{MANIFEST}"):
        with bucket.filesystem.open_output_stream(f"{BUCKET}/torn/{file}") as target:
            target.write((judged.path / file).read_bytes()[:-9])
    with pytest.raises(MissingHistoryError, match=r"^s3://bucket/no-run is not the directory of a"):
        fetch(remote(uri.replace("/run?", "/no-run?")), tmp_path)
    with pytest.raises(DamagedHistoryError, match=r"^s3://bucket/torn is not valid JSON"):
        fetch(remote(uri.replace("/run?", "/torn?")), tmp_path)
    bucket.filesystem.delete_file(f"{BUCKET}/run/history/{MANIFEST}")
    with pytest.raises(MissingHistoryError, match=r"^s3://bucket/run/history contains no history"):
        fetch(remote(uri), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_object_that_is_gone_is_named(bucket: Store, judged: RunDirectory) -> None:
    there = remote(bucket.upload(judged, "run"))
    bucket.filesystem.delete_file(f"{BUCKET}/run/history/events-00000.parquet")
    with pytest.raises(MissingHistoryError, match=r"^s3://bucket/run/history/events-00000\.parq"):
        open_history(there / "history")


def test_a_file_uri_is_a_path(judged: RunDirectory) -> None:
    assert parse_location(judged.path.as_uri()) == judged.path
    assert parse_location("store/latest") == Path("store/latest")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("bogus://bucket/run", "bogus://bucket/run cannot be read: Unrecognized filesystem type"),
        ("s3://key:secret@bucket/run?region=x", "s3://bucket/run was given with a password"),
    ],
)
def test_what_is_no_place_is_named_without_secrets(uri: str, reason: str) -> None:
    with pytest.raises(ForeignHistoryError, match=f"^{reason}"):
        parse_location(uri)
    with pytest.raises(ForeignHistoryError) as refused:
        parse_location(uri)
    assert "secret" not in str(refused.value)


def test_a_manifest_that_names_a_place_is_read_from_there(
    judged: RunDirectory, tmp_path: Path
) -> None:
    """Local files too: a place is a URI, whatever its file system."""
    reported = msgspec.structs.replace(
        read_manifest(judged.history), files_uri=judged.history.as_uri()
    )
    (tmp_path / MANIFEST).write_bytes(msgspec.json.encode(reported))
    assert open_history(tmp_path).table().equals(open_history(judged.history).table())
    assert msgspec.json.decode((tmp_path / MANIFEST).read_bytes(), type=Manifest) == reported
