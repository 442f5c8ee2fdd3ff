"""Events of format 3, which had several meanings in one column, are read with the columns of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from nemesis.history.ingest import ingest
from nemesis.history.manifest import MANIFEST
from nemesis.history.older_formats import OLDER_SCHEMA, unchanged_schema, upgraded
from nemesis.history.raw_lines import byte_ranges, read
from nemesis.history.reader import open_history
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.history.schema import SCHEMA, completed

SETTINGS = '{"unclean.leader.election.enable":true,"min.insync.replicas":2}'
TP = {"topic": "t", "partition": 0}
BATCH = "producer 5, epoch 1, sequence 9"

CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "ok", "f": "init-producer-id", "value": 5}, {"producer_id": 5}),
    ({"kind": "invoke", "f": "create-topic", "value": 3}, {"partition_count": 3}),
    ({"kind": "fail", "f": "create-partitions", "value": 3}, {"partition_count": 3}),
    ({"kind": "ok", "f": "txn", "values": [1, 3, 1, 1]}, {"micro_operations": [1, 3, 1, 1]}),
    (
        {"kind": "invoke", "f": "send", "value": 7, "role": "idempotent", "detail": BATCH},
        {
            "value": 7,
            "delivery": "idempotent",
            "producer_id": 5,
            "producer_epoch": 1,
            "sequence": 9,
        },
    ),
    ({"kind": "invoke", "f": "send", "detail": "txn#2"}, {"part_of": "txn#2"}),
    ({"kind": "ok", "f": "crash", "detail": "{:value nil}"}, {"original": "{:value nil}"}),
    ({"kind": "ok", "f": "log-start", "offset": 4}, {"log_start_offset": 4}),
    ({"kind": "ok", "f": "poll", "offset": 4}, {"offset": 4}),
    ({"kind": "ok", "f": "alter-log-dir", "path": "/a"}, {"log_dir": "/a"}),
    (
        {"kind": "broker-started", "detail": SETTINGS},
        {"unclean_leader_election_enable": True, "min_insync_replicas": 2},
    ),
    ({"kind": "broker-started", "detail": "words"}, {"detail": "words"}),
    ({"kind": "session-state", "detail": "expired"}, {"session_state": "expired"}),
    ({"kind": "session-closed", "detail": "expired"}, {"reason": "expired"}),
    ({"kind": "session-created", "detail": "2000"}, {"timeout_ms": 2000}),
    ({"kind": "controller-resigned", "detail": "shutdown"}, {"reason": "shutdown"}),
    ({"kind": "leader-elected", "detail": "unclean"}, {"strategy": "unclean"}),
    ({"kind": "election-asked", "detail": "unclean"}, {"step": "unclean"}),
    (
        {"kind": "znode-attempt", "path": "/a", "detail": "SetData"},
        {"path": "/a", "zk_op": "setData"},
    ),
    (
        {"kind": "transition", "peer": 2, "detail": "replica New->Online"},
        {"replica": 2, "from_state": "New", "to_state": "Online"},
    ),
    ({"kind": "transition", "detail": "sideways"}, {"detail": "sideways"}),
    ({"kind": "control-request-sent", "peer": 2}, {"peer": 2}),
    ({"kind": "log-start-offset", "detail": "segment-deletion"}, {"reason": "segment-deletion"}),
    ({"kind": "log-dir-changed", "path": "/a"}, {"log_dir": "/a"}),
    (
        {"kind": "log-cleaned", "offset": 1, "detail": "9 -> 4 bytes"},
        {"offset": 1, "bytes_before": 9, "bytes_after": 4},
    ),
    ({"kind": "isr-change-proposed", "detail": "shrink"}, {"change": "shrink"}),
    ({"kind": "replica-stopped", "detail": "deleting"}, {"step": "deleting"}),
    ({"kind": "metadata-updated", "peer": 1, "detail": "3"}, {"peer": 1, "count": 3}),
    ({"kind": "phase", "detail": "heal"}, {"phase": "heal"}),
    ({"kind": "convergence", "detail": "isr", "offset": 30}, {"check": "isr", "duration_ms": 30}),
    ({"kind": "harness-lag", "offset": 30}, {"duration_ms": 30}),
    ({"kind": "end-state", "detail": "logs", "offset": 3}, {"source": "logs", "count": 3}),
    (
        {"kind": "stored-log", "detail": "dead", "offset": 3, **TP},
        {"alive": False, "cleaner_offset": 3, **TP},
    ),
    ({"kind": "stored-log", "detail": "alive", "offset": 3}, {"alive": True, "count": 3}),
    ({"kind": "fault-applied", "detail": "{}"}, {"detail": "{}"}),
    ({"kind": "append", "role": "leader", "offset": 3}, {"role": "leader", "offset": 3}),
]


def events(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, written as a raw file of format 3 and read, without the columns of every event."""
    common = {"time": 1, "process": "p"}
    path.write_bytes(b"".join(msgspec.json.encode({**common, **row}) + b"\n" for row in rows))
    (piece,) = byte_ranges(path)
    table, problems = read(piece, 3)
    assert problems == []
    assert table.schema.equals(SCHEMA)
    left_out = {*common, "kind", "seq", "f"}
    return [
        {name: value for name, value in row.items() if value is not None and name not in left_out}
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize(("old", "new"), CASES)
def test_a_column_with_several_meanings_becomes_one_of_its_own(
    tmp_path: Path, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert events(tmp_path / "broker-1.jsonl", [old]) == [new]


def test_rows_of_several_kinds_keep_their_order(tmp_path: Path) -> None:
    olds, news = zip(*CASES, strict=True)
    assert events(tmp_path / "broker-1.jsonl", [*olds, *olds]) == [*news, *news]


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "broker-1.jsonl"
    path.write_bytes(b'{"time":1,"process":"p","kind":"phase","detail":"heal"}\nnonsense\n')
    (piece,) = byte_ranges(path)
    table, problems = read(piece, 3)
    assert table.column("phase").to_pylist() == ["heal"]
    assert len(problems) == 1


def test_no_rows_are_no_rows() -> None:
    assert upgraded(OLDER_SCHEMA.empty_table()).equals(SCHEMA.empty_table())
    for version in (4, 5, 6, 7, 8, 9):
        assert completed(unchanged_schema(version).empty_table()).equals(SCHEMA.empty_table())


@pytest.mark.parametrize("version", [4, 5, 6, 7, 8, 9])
def test_a_history_without_the_newest_column_is_read(tmp_path: Path, version: int) -> None:
    run = RunDirectory.create(tmp_path, RunInfo(scenario="s", seed=1, brokers=1))
    rows = [
        {"time": n, "seq": n, "process": "broker-1", "kind": "truncate", "log_end_offset": n, **TP}
        for n in range(3)
    ]
    run.raw_file("broker-1").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    ingest(run)
    for path in run.history.glob("*.parquet"):
        pq.write_table(pq.read_table(path).select(unchanged_schema(version).names), path)
    manifest = msgspec.json.decode((run.history / MANIFEST).read_bytes())
    (run.history / MANIFEST).write_bytes(msgspec.json.encode({**manifest, "version": version}))
    table = open_history(run.history).table()
    assert table.schema.equals(SCHEMA)
    assert table.column("log_end_offset").to_pylist() == [0, 1, 2]
    assert table.column("producers_end").to_pylist() == [None, None, None]
    assert table.column("recovery_point").to_pylist() == [None, None, None]
    assert table.column("group").to_pylist() == [None, None, None]
    assert table.column("instance").to_pylist() == [None, None, None]
