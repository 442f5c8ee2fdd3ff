"""Ingestion: everything arrives, in the documented order; damage is named, never fatal."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.generate import write
from nemesis.history import buckets, raw_lines
from nemesis.history.errors import (
    DamagedHistoryError,
    ForeignHistoryError,
    MissingHistoryError,
    SparkError,
)
from nemesis.history.events import Event
from nemesis.history.ingest import ingest
from nemesis.history.manifest import MANIFEST
from nemesis.history.reader import open_history
from nemesis.history.recorder import FileSink
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.schema import SCHEMA, completed, ordered, set_columns, table
from nemesis.history.sources import EventSource
from tests.history.quorum_logs import REAL as QUORUM_LOG


def event(time: int, process: str = "broker-1", kind: str = "append", **columns: object) -> Event:
    return Event(time=time, process=process, kind=kind, **columns)  # type: ignore[arg-type]


def new_run(tmp_path: Path, brokers: int = 1) -> RunDirectory:
    return RunDirectory.create(tmp_path, RunInfo(scenario="s", seed=1, brokers=brokers))


def record(run: RunDirectory, process: str, *events: Event) -> Path:
    path = run.raw_file(process)
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    return path


def whole_run(tmp_path: Path) -> tuple[RunDirectory, Path]:
    """A run without problems, and the file of its broker."""
    run = new_run(tmp_path)
    record(run, "zookeeper", event(-1, "zookeeper", "znode", zxid=1))
    return run, record(run, "broker-1", *(event(n, seq=n, offset=n) for n in range(3)))


def test_rows_come_partition_major_and_zookeeper_first(tmp_path: Path) -> None:
    run = new_run(tmp_path, brokers=2)
    of_orders: dict[str, Any] = {"topic": "orders", "partition": 0}
    record(
        run,
        "broker-1",
        event(20, seq=0, kind="high-watermark", **of_orders),
        event(5, seq=1, kind="phase"),
        event(30, seq=2, topic="orders", partition=1),
        event(9, seq=3, topic="apples", partition=0),
    )
    record(run, "broker-2", event(20, "broker-2", **of_orders))
    record(
        run,
        "zookeeper",
        event(-1, "zookeeper", "znode", zxid=8, **of_orders),
        event(-1, "zookeeper", "znode", zxid=7, seq=1, topic="orders"),
        event(-1, "zookeeper", "znode", zxid=7, seq=0),
    )
    report = ingest(run)
    assert (report.events, report.problems) == (8, ())
    rows = open_history(run.history).table().to_pylist()
    assert [(r["topic"], r["partition"], r["time"], r["zxid"], r["kind"]) for r in rows] == [
        (None, None, -1, 7, "znode"),
        (None, None, 5, None, "phase"),
        ("apples", 0, 9, None, "append"),
        ("orders", None, -1, 7, "znode"),
        ("orders", 0, -1, 8, "znode"),
        ("orders", 0, 20, None, "append"),
        ("orders", 0, 20, None, "high-watermark"),
        ("orders", 1, 30, None, "append"),
    ]


@pytest.mark.parametrize(("brokers", "files"), [(1, [25, 25, 25, 25]), (2, [200])])
def test_a_long_piece_alone_becomes_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brokers: int, files: list[int]
) -> None:
    run = new_run(tmp_path, brokers)
    for name in (f"broker-{number + 1}" for number in range(brokers)):
        record(run, name, *(event(99 - n, name, seq=n, topic="orders") for n in range(100)))
    ingest(run)
    rows = open_history(run.history).table().to_pylist()
    monkeypatch.setattr(buckets, "FILE_ROWS", 30)
    ingest(run)
    again = open_history(run.history)
    assert again.table().to_pylist() == rows
    assert [entry.rows for entry in again.manifest.files] == files


def test_every_column_survives(tmp_path: Path) -> None:
    samples: dict[str, Any] = {"time": 1, "seq": 4}
    for field in SCHEMA:
        if field.name not in samples:
            text = "string" in str(field.type)
            many = str(field.type).startswith("list")
            sample = "wörd" if text else 2**40
            samples[field.name] = [sample * 2, sample] if many else sample
            if field.type == pa.bool_():
                samples[field.name] = True
    full = Event(**samples)
    run = new_run(tmp_path)
    record(run, "broker-1", full)
    ingest(run)
    (row,) = open_history(run.history).table().to_pylist()
    assert row == samples


def test_a_torn_last_line_is_no_problem(tmp_path: Path) -> None:
    run, path = whole_run(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    report = ingest(run)
    assert (report.events, report.problems) == (3, ())


def test_a_file_in_which_nothing_was_written_yet_is_no_problem(tmp_path: Path) -> None:
    run, _ = whole_run(tmp_path)
    run.raw_file("clients").write_bytes(b"")
    report = ingest(run)
    assert (report.events, report.problems) == (4, ())


def started(incarnation: int) -> bytes:
    began = event(9, kind="broker-started", incarnation=incarnation)
    return msgspec.json.encode(began) + b"\n"


def torn_by_a_kill(run: RunDirectory, cut: int) -> Path:
    """The file of a broker whose life 1 left two events, the second without its last ``cut`` bytes."""
    events = (event(n, seq=n, incarnation=1, original="wörd") for n in range(2))
    path = record(run, "broker-1", *events)
    path.write_bytes(path.read_bytes()[:-cut])
    return path


def append(path: Path, line: bytes) -> None:
    sink = FileSink(path)
    sink(line)
    sink.close()


@pytest.mark.parametrize("piece_bytes", [1, raw_lines.PIECE_BYTES])
def test_a_line_torn_by_a_kill_costs_only_itself_wherever_it_is_torn(
    tmp_path: Path, piece_bytes: int
) -> None:
    run = new_run(tmp_path)
    length = len(torn_by_a_kill(run, 1).read_bytes()) // 2
    for cut in range(1, length):
        path = torn_by_a_kill(run, cut)
        append(path, started(2))
        append(path, msgspec.json.encode(event(10, incarnation=2)) + b"\n")
        parts = [raw_lines.read(piece) for piece in raw_lines.byte_ranges(path, piece_bytes)]
        times = [time for rows, _ in parts for time in rows.column("time").to_pylist()]
        assert times == ([0, 1, 9, 10] if cut == 1 else [0, 9, 10])
        assert [problem for _, problems in parts for problem in problems] == []


@pytest.mark.parametrize(
    "after", [msgspec.json.encode(event(9, incarnation=2)) + b"\n", started(1), b"junk\n"]
)
def test_a_fragment_that_no_new_life_follows_is_a_problem(tmp_path: Path, after: bytes) -> None:
    run = new_run(tmp_path)
    path = torn_by_a_kill(run, 9)
    append(path, after + started(2))
    assert any("is damaged at byte" in problem for problem in ingest(run).problems)


def test_a_whole_line_that_is_no_event_is_a_problem_before_a_new_life_too(tmp_path: Path) -> None:
    run, path = whole_run(tmp_path)
    append(path, b"{}\n" + started(2))
    (problem,) = ingest(run).problems
    assert "is damaged at byte" in problem


def test_a_sink_adds_nothing_to_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "raw" / "broker-1.jsonl"
    append(path, b"1\n")
    append(path, b"2\n")
    assert path.read_bytes() == b"1\n2\n"


@pytest.mark.parametrize("junk", [b"\xff\xfe", b"{}", b'{"time":1,"kind":"x"}', b'{"tim', b"[1]"])
def test_a_damaged_line_is_a_problem_and_costs_only_itself(tmp_path: Path, junk: bytes) -> None:
    run, path = whole_run(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + junk + b"\n" + b"".join(lines[1:]))
    report = ingest(run)
    assert report.events == 4
    (problem,) = report.problems
    assert problem.startswith(f"{path} is damaged at byte {len(lines[0])}: ")
    assert open_history(run.history).problems == report.problems


def test_a_broker_without_a_file_and_a_missing_transaction_log_are_problems(tmp_path: Path) -> None:
    run = new_run(tmp_path, brokers=2)
    record(run, "broker-1", event(1))
    missing, zookeeper = ingest(run).problems
    assert missing.endswith("broker-2.jsonl is missing: nothing is known of what broker-2 did")
    assert "lacks the transaction logs" in zookeeper


def test_nothing_recorded_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    with pytest.raises(MissingHistoryError, match="nothing was recorded"):
        ingest(run)
    assert not run.history.exists()


@settings(max_examples=25)
@given(piece_bytes=st.integers(1, 400))
def test_pieces_of_a_file_hold_every_line_once(
    piece_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "broker-1.jsonl"
    events = [event(n, original="x" * (n % 60)) for n in range(40)]
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))
    times = []
    for piece in raw_lines.byte_ranges(path, piece_bytes):
        rows, problems = raw_lines.read(piece)
        assert problems == []
        times += rows.column("time").to_pylist()
    assert times == list(range(40))


def test_the_fast_and_the_slow_way_read_the_same(tmp_path: Path) -> None:
    run = write(tmp_path, 500)
    path = run.raw_file("broker-1")
    fast, _ = raw_lines.read(raw_lines.byte_ranges(path)[0])
    path.write_bytes(path.read_bytes() + b"junk")
    slow, problems = raw_lines.read(raw_lines.byte_ranges(path)[0])
    assert problems == []
    assert fast.to_pylist() == slow.to_pylist()


@given(
    st.lists(
        st.builds(
            event,
            st.integers(-1, 3),
            st.sampled_from(["a", "b"]),
            st.sampled_from(["append", "high-watermark"]),
            topic=st.sampled_from([None, "t", "u"]),
            partition=st.sampled_from([None, 0, 1]),
            seq=st.integers(0, 3),
        )
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_does_not_depend_on_arrival(events: list[Event], random: object) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    expected = ordered(table(events)).to_pylist()
    assert ordered(table(shuffled)).to_pylist() == expected
    assert completed(ordered(set_columns(shuffled))).to_pylist() == expected


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not(
    tmp_path: Path,
) -> None:
    run, _ = whole_run(tmp_path)
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    for owner in (killed.pid, os.getppid()):
        (run.path / f".history-{owner}" / "parsed").mkdir(parents=True)
    ingest(run)
    drafts = [path.name for path in run.path.glob(".history-*")]
    assert drafts == [f".history-{os.getppid()}"]


class TestDamagedHistory:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunDirectory:
        run, _ = whole_run(tmp_path)
        ingest(run)
        return run

    def test_absent(self, tmp_path: Path) -> None:
        with pytest.raises(
            MissingHistoryError, match=r"contains no history: expected _manifest\.json"
        ):
            open_history(tmp_path)

    def test_foreign_manifest(self, run: RunDirectory) -> None:
        (run.history / MANIFEST).write_text('{"hello": 1}')
        with pytest.raises(ForeignHistoryError, match="manifest"):
            open_history(run.history)

    def test_missing_file(self, run: RunDirectory) -> None:
        (run.history / "events-00000.parquet").unlink()
        with pytest.raises(MissingHistoryError, match=r"events-00000\.parquet is missing"):
            open_history(run.history)

    def test_truncated_file(self, run: RunDirectory) -> None:
        path = run.history / "events-00000.parquet"
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(DamagedHistoryError, match=r"events-00000\.parquet is damaged"):
            open_history(run.history)

    def test_flipped_bits_in_a_page(self, run: RunDirectory) -> None:
        path = run.history / "events-00000.parquet"
        path.write_bytes(path.read_bytes().replace(b"broker-1", b"broker-7", 1))
        with pytest.raises(DamagedHistoryError, match=r"events-00000\.parquet is damaged"):
            open_history(run.history).table()


def no_spark() -> NoReturn:
    raise SparkError("Spark cannot start")


def test_without_spark_the_earlier_history_stays(tmp_path: Path) -> None:
    run, file = whole_run(tmp_path)
    ingest(run)
    file.write_bytes(b"")
    before = open_history(run.history).table()
    with pytest.raises(SparkError, match="Spark cannot start"):
        ingest(run, no_spark)
    assert open_history(run.history).table().equals(before)
    assert {path.name for path in run.path.iterdir()} >= {"history", "raw"}
    assert not list(run.path.glob(".history-*"))


def kraft_run(tmp_path: Path, voters: int) -> RunDirectory:
    """A run of Kafka 4.1.1 with three voters, of which this many left their logs."""
    observes = (EventSource.QUORUM_LOG, EventSource.CLIENTS)
    run = RunDirectory.create(
        tmp_path, RunInfo(scenario="s", seed=1, brokers=3, zookeepers=0, observes=observes)
    )
    record(run, "client-1", event(5, "client-1", "invoke"))
    for number in range(1, voters + 1):
        (run.quorum / f"broker-{number}").mkdir(parents=True)
        log = run.quorum / f"broker-{number}" / f"{0:020}.log"
        log.write_bytes(gzip.decompress(QUORUM_LOG.read_bytes()))
    return run


def test_the_logs_of_a_quorum_come_before_everything_else(tmp_path: Path) -> None:
    run = kraft_run(tmp_path, voters=2)
    assert ingest(run).problems == ()
    history = open_history(run.history)
    assert history.events == 232
    rows = history.rows(range(3))
    assert [rows[number]["path"] for number in range(3)] == [
        "/controller",
        "/controller_epoch",
        "/config/brokers/<default>",
    ]


def test_a_quorum_without_the_logs_of_a_majority_is_a_problem(tmp_path: Path) -> None:
    [none] = ingest(kraft_run(tmp_path / "none", voters=0)).problems
    assert "lacks the metadata logs of the quorum" in none
    [few] = ingest(kraft_run(tmp_path / "few", voters=1)).problems
    assert few == "the metadata logs of 1 voters have records: expected a majority of 3"
