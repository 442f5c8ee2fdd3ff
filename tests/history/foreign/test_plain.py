"""Compiled code reads a plain history as ``importing`` does, and leaves every other history to it."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from nemesis.history import raw_lines
from nemesis.history.foreign.importing import Imported, read_file, write_events
from nemesis.history.foreign.origins import FILE
from nemesis.history.foreign.plain import events as plain_events
from nemesis.history.foreign.plain import histories
from nemesis.history.foreign.plain.events import write_plain
from nemesis.history.foreign.plain.histories import PlainHistory, parse_plain, read_plain
from nemesis.history.foreign.plain.texts import CHUNK_BYTES, MemoryText, divide
from nemesis.history.ingest import ingest
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.schema import completed, ordered

WORKLOADS = ("register", "cas-register", "list-append", "rw-register")
REGISTER = """{:type :invoke, :process 0, :f :write, :value 3, :time 10, :index 0}
{:type :ok, :process 0, :f :write, :value 3, :time 20, :index 1}
{:type :invoke, :process 1, :f :read, :value nil, :time 30, :index 2}
{:type :ok, :process 1, :f :read, :value 3, :time 40, :index 3}
"""
TXN = """{:type :invoke, :process 0, :f :txn, :value [[:append 1 1] [:r 1 nil]], :index 0}
{:type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 1 [1]]], :index 1}
"""
ERRORS = (":timeout", '[:a "b" {:c 1}]', "nil", '"x"')
NEMESIS_LINES = (
    '{:type :info, :process :nemesis, :f :start, :value {:targets ["n1"]}',
    "{:type :info, :process :nemesis, :f :stop, :value nil, :error [:odd 1]",
)


def plain(text: str, workload: str, chunk_bytes: int = CHUNK_BYTES) -> PlainHistory | None:
    content = MemoryText(np.frombuffer(text.encode(), dtype=np.uint8))
    return parse_plain(content, divide(content, chunk_bytes), workload)


def micros(
    rng: Random, workload: str, *, is_answer: bool, shape: list[tuple[bool, int, int]]
) -> str:
    """Micro-operations of a shape (whether it writes, key, value), with answers to reads or without."""
    write = "append" if workload == "list-append" else "w"
    parts = []
    for writes, key, value in shape:
        if writes:
            parts.append(f"[:{write} {key} {value}]")
        elif not is_answer:
            parts.append(rng.choice([f"[:r {key} nil]", f"[:r {key}]"]))
        elif workload == "list-append":
            elements = " ".join(str(rng.randrange(99)) for _ in range(rng.randrange(4)))
            parts.append(f"[:r {key} {rng.choice([f'[{elements}]', 'nil'])}]")
        else:
            parts.append(f"[:r {key} {rng.choice(['nil', '7'])}]")
    return f"[{rng.choice([' ', ', ', ''])}{' '.join(parts)}]"


def asked_and_answered(rng: Random, workload: str, *, has_keys: bool) -> tuple[str, str, str]:
    """The function of an operation, the value of its invocation and that of its ``ok``."""
    if workload in ("list-append", "rw-register"):
        shape = [
            (rng.random() < 0.5, rng.randrange(9), rng.randrange(99))
            for _ in range(rng.randrange(4))
        ]
        asked = micros(rng, workload, is_answer=False, shape=shape)
        return "txn", asked, micros(rng, workload, is_answer=True, shape=shape)
    f = rng.choice(["read", "write", "cas"] if workload == "cas-register" else ["read", "write"])
    key = rng.randrange(5)
    if f == "read":
        asked, answered = "nil", rng.choice(["nil", str(rng.randrange(9))])
    else:
        asked = f"[{rng.randrange(9)} {rng.randrange(9)}]" if f == "cas" else str(rng.randrange(9))
        answered = asked
    return (f, f"[{key} {asked}]", f"[{key} {answered}]") if has_keys else (f, asked, answered)


def drawn(rng: Random, workload: str) -> str:
    """A plain history, with all that such a history may have."""
    has_keys, has_index = rng.random() < 0.5, rng.random() < 0.7
    has_time = rng.random() < 0.7
    time, first = rng.randrange(10**9), rng.randrange(2)
    under_way: dict[int, tuple[str, str, str]] = {}
    texts: list[str] = []
    for process in range(rng.randrange(1, 40)):
        client = process if rng.random() < 0.1 else rng.choice([0, 10, 2, 555])
        if rng.random() < 0.1:
            entries = [rng.choice(NEMESIS_LINES)]
        elif client in under_way:
            f, asked, answered = under_way.pop(client)
            kind = rng.choice(["ok", "ok", "fail", "info"])
            value = answered if kind == "ok" else asked
            entries = [f"{{:type :{kind}", f":process {client}", f":f :{f}", f":value {value}"]
            if kind != "ok" and rng.random() < 0.5:
                entries.append(f":error {rng.choice(ERRORS)}")
        else:
            f, asked, answered = under_way[client] = asked_and_answered(
                rng, workload, has_keys=has_keys
            )
            entries = ["{:type :invoke", f":process {client}", f":f :{f}", f":value {asked}"]
            entries += [':node "n1"'] * (rng.random() < 0.2)
        if has_time:
            steps = [0, 3, 10] if has_index or rng.random() < 0.05 else [3, 10]
            time += rng.choice(steps) if not has_index or rng.random() < 0.9 else -5
            entries.append(f":time {max(time, 0)}")
        if has_index:
            entries.append(f":index {first + len(texts)}")
        texts.append(", ".join(entries) + "}")
    lines = [text if rng.random() < 0.95 else f"\n ;; a comment\n{text}" for text in texts]
    return "\n".join(lines) + "\n"


def rows_of(file: Path) -> pa.Table:
    """The events of a file of JSON lines, in order."""
    return ordered(pa.concat_tables(raw_lines.read(p)[0] for p in raw_lines.byte_ranges(file)))


def compare(history: PlainHistory, text: str, workload: str, directory: Path) -> None:
    """Both readers give the same events, lines and notes."""
    directory.mkdir()
    table, lines, source = (directory / name for name in ("x.arrow", "x.jsonl", "x.edn"))
    source.write_text(text, encoding="utf-8")
    imported: Imported = write_plain(history, directory, table)
    origins = np.load(directory / FILE)
    assert imported == write_events(read_file(source), workload, directory, lines), text
    assert np.array_equal(origins, np.load(directory / FILE)), text
    rows = completed(pa.ipc.open_file(pa.memory_map(str(table))).read_all())
    assert rows.to_pylist() == rows_of(lines).to_pylist(), text


@pytest.mark.parametrize("workload", WORKLOADS)
def test_random_histories_give_the_same_events(workload: str, tmp_path: Path) -> None:
    read = 0
    for seed in range(150):
        text = drawn(Random(f"{workload}/{seed}"), workload)
        history = plain(text, workload)
        if history is not None:
            read += 1
            compare(history, text, workload, tmp_path / str(seed))
    assert read > 130


@pytest.mark.parametrize("chunk_bytes", [1, 100])
def test_a_text_of_many_chunks_gives_the_same_events(chunk_bytes: int, tmp_path: Path) -> None:
    for number, workload in enumerate(WORKLOADS):
        text = drawn(Random(f"{workload}/15"), workload)
        history = plain(text, workload, chunk_bytes)
        assert history is not None
        compare(history, text, workload, tmp_path / str(number))


@pytest.mark.parametrize("chunk_bytes", [100, CHUNK_BYTES])
def test_lines_of_nemesis_are_few(chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{line}, :index {index}}}\n" for index, line in enumerate(NEMESIS_LINES * 2))
    lines = REGISTER.splitlines()
    text += "".join(
        line.replace(f":index {n}", f":index {n + 4}") + "\n" for n, line in enumerate(lines)
    )
    text = text.replace(", :time 10", "").replace(", :time 20", "")
    text = text.replace(", :time 30", "").replace(", :time 40", "")
    monkeypatch.setattr(histories, "MAX_OTHERS", 4)
    assert plain(text, "register", chunk_bytes) is not None
    monkeypatch.setattr(histories, "MAX_OTHERS", 3)
    assert plain(text, "register", chunk_bytes) is None


@pytest.mark.parametrize("rows", [1, 7])
def test_events_of_many_batches_are_the_same(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_events, "BATCH_ROWS", rows)
    texts = [
        (workload, drawn(Random(f"{workload}/{seed}"), workload))
        for workload in WORKLOADS
        for seed in range(15, 20)
    ]
    read = [(text, workload, plain(text, workload)) for workload, text in texts]
    for number, (text, workload, history) in enumerate(read):
        if history is not None:
            compare(history, text, workload, tmp_path / str(number))
    assert sum(history is not None for _, _, history in read) > 15


def test_a_value_that_is_discarded_behind_an_operation_is_nothing(tmp_path: Path) -> None:
    nemesis = "{:type :info, :process :nemesis, :f :start, :time 50, :index 4} #_1 #_{:a 2}"
    text = f"{REGISTER}{nemesis}\n"
    history = plain(text, "register")
    assert history is not None
    compare(history, text, "register", tmp_path / "discarded")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (":index 3", ":index 2"),
        (":index 3", ":index 5"),
        (", :index 3", ""),
        (", :time 40", ""),
        (":time 40", ":time -1"),
        (":type :ok, :process 1", ":type :ok, :process 2"),
        (":type :ok, :process 1", ":type :ok"),
        (":type :ok, :process 1", ":type :info, :process :worker"),
        (":type :ok, :process 1", ":type :done, :process 1"),
        (":type :ok, :process 0", ":type :invoke, :process 0"),
        (":f :read, :value nil", ":f :drain, :value nil"),
        (":f :read, :value 3", ":f :write, :value 3"),
        (":f :read, :value 3", ":f :read, :value [1 3]"),
        (":f :read, :value 3", ":f :read, :value :three"),
        (":f :read, :value 3", ":f :read, :value -3"),
        (":f :read, :value 3", ":f :read, :value 3.0"),
        (":f :read, :value 3", f":f :read, :value {2**62}"),
        (":f :read, :value 3", ":f :read, :value 3 :value 4"),
        (":f :read, :value 3", ":f :read, :value 3 :note #{1}"),
        (":f :read, :value 3", ":f :read, :value 3 :error {:a}"),
        (":f :read, :value 3", ":f :read, :value 3 :key 1"),
        ("20, :index 1}", "20, :index 1} {:type :ok}"),
        ("20, :index 1}", "20, :index 1"),
        ("{:type :invoke, :process 0, ", '{"type": "invoke", '),
    ],
)
def test_a_register_that_is_not_plain_is_left_to_the_other_reader(old: str, new: str) -> None:
    assert plain(REGISTER, "register") is not None
    assert old in REGISTER
    assert plain(REGISTER.replace(old, new), "register") is None


def test_equal_times_without_indexes_are_plain_if_what_begins_is_first() -> None:
    text = "\n".join(f"{line.split(', :index')[0]}}}" for line in REGISTER.splitlines()) + "\n"
    assert plain(text, "register") is not None
    assert plain(text.replace(":time 20", ":time 10"), "register") is not None
    assert plain(text.replace(":time 30", ":time 20"), "register") is None
    assert plain(REGISTER.replace(":time 30", ":time 20"), "register") is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[:r 1 nil]", "[:r 1 [1]]"),
        ("[:r 1 [1]]", "[:r 1]"),
        ("[:r 1 [1]]", "[:r 2 [1]]"),
        ("[:r 1 [1]]", "[:r 1 1]"),
        ("[:r 1 [1]]", "[:r 1 [1]"),
        ("[:r 1 [1]]", "[:w 1 1]"),
        ("[:append 1 1] [:r 1 [1]]", "[:append 1 1]"),
        ("[:append 1 1] [:r 1 [1]]", "[:append 1 2] [:r 1 [1]]"),
        ("[[:append 1 1] [:r 1 [1]]]", "nil"),
    ],
)
def test_a_transaction_that_is_not_plain_is_left_to_the_other_reader(old: str, new: str) -> None:
    assert plain(TXN, "list-append") is not None
    assert old in TXN
    assert plain(TXN.replace(old, new), "list-append") is None


@pytest.mark.parametrize(("text", "workload"), [(REGISTER, "register"), (TXN, "list-append")])
def test_a_history_of_more_numbers_than_a_list_counts_is_not_plain(
    text: str, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = 4 if workload == "register" else 15
    monkeypatch.setattr(histories, "MOST_NUMBERS", numbers)
    assert plain(text, workload) is not None
    monkeypatch.setattr(histories, "MOST_NUMBERS", numbers - 1)
    assert plain(text, workload) is None


@pytest.mark.parametrize("highest", [9, 10])
def test_processes_are_numbered_in_order(highest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = REGISTER.replace(":process 1", ":process 10")
    monkeypatch.setattr(histories, "MOST_PROCESSES", highest)
    history = plain(text, "register")
    assert history is not None
    assert history.process_names.tolist() == [0, 10]
    assert history.process.tolist() == [0, 0, 1, 1]


def test_a_file_is_read_if_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, compressed = tmp_path / "history.edn", tmp_path / "history.edn.gz"
    file.write_text(REGISTER)
    compressed.write_bytes(gzip.compress(REGISTER.encode()))
    assert read_plain(file, "register") is None
    monkeypatch.setattr(histories, "WORTH_COMPILED", len(REGISTER))
    for path in (file, compressed):
        history = read_plain(path, "register")
        assert history is not None
        assert history.line.tolist() == [1, 2, 3, 4]
    assert read_plain(file, "queue") is None
    compressed.write_bytes(compressed.read_bytes()[:-9])
    assert read_plain(compressed, "register") is None
    file.write_text(REGISTER.replace("3", "\0"))
    assert read_plain(file, "register") is None


def test_a_run_is_ingested_from_the_arrow_file(tmp_path: Path) -> None:
    history = plain(REGISTER, "register")
    assert history is not None
    run = RunDirectory.create(tmp_path, RunInfo(scenario="register", seed=0, target="foreign"))
    write_plain(history, run.path, run.raw_table("clients"))
    assert ingest(run).events == 4
    history_read = open_history(run.history)
    rows = history_read.table(("time", "kind", "value", "topic"))
    assert rows.column("time").to_pylist() == [10, 20, 30, 40]
    assert rows.column("topic").null_count == 4
    assert "topic" not in history_read.manifest.columns
    run.raw_table("clients").write_bytes(run.raw_table("clients").read_bytes()[:-50])
    assert [problem for problem in ingest(run).problems if "is damaged" in problem]
