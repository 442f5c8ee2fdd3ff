"""The transaction log's reader on hand-written bytes: damage, gaps, old servers."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_ensemble import merge
from nemesis.history.zookeeper_log import Transaction, read_log

HEADER = struct.pack(">4siq", b"ZKLG", 2, 0)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def record(zxid: int, kind: int, body: bytes, *, session: int = 9, cxid: int = 1) -> bytes:
    payload = struct.pack(">qiqqi", session, cxid, zxid, 1000, kind) + body
    return struct.pack(">qi", zlib.adler32(payload), len(payload)) + payload + b"B"


def create(zxid: int, path: str, *, ephemeral: bool = False) -> bytes:
    body = text(path) + text("x") + struct.pack(">i", 0) + bytes([ephemeral]) + bytes(4)
    return record(zxid, 1, body)


def write(directory: Path, first: int, *records: bytes, padding: int = 100) -> Path:
    path = directory / f"log.{first:x}"
    path.write_bytes(HEADER + b"".join(records) + bytes(padding))
    return path


def zxids(transactions: list[Transaction]) -> list[int]:
    return [entry.zxid for entry in transactions]


def test_files_are_read_in_the_order_of_their_zxids(tmp_path: Path) -> None:
    write(tmp_path, 0x10, *(create(zxid, f"/{zxid}") for zxid in range(16, 18)))
    write(tmp_path, 0x1, *(create(zxid, f"/{zxid}") for zxid in range(1, 10)))
    write(tmp_path, 0xA, *(create(zxid, f"/{zxid}") for zxid in range(10, 16)))
    contents = read_log(tmp_path)
    assert zxids(contents.transactions) == list(range(1, 18))
    assert contents.problems == []


def test_an_empty_directory_is_a_problem(tmp_path: Path) -> None:
    (problem,) = read_log(tmp_path).problems
    assert problem == f"there is no ZooKeeper transaction log in {tmp_path}"


def test_a_missing_file_shows_as_a_gap(tmp_path: Path) -> None:
    write(tmp_path, 1, create(1, "/1"))
    write(tmp_path, 5, create(5, "/5"))
    assert merge([read_log(tmp_path)]).problems == [
        "the transaction logs of ZooKeeper lack zxid 0x2 to 0x4"
    ]


def test_damage_with_more_records_behind_it_is_a_problem(tmp_path: Path) -> None:
    bad = bytearray(create(2, "/2"))
    bad[-3] ^= 0xFF
    path = write(tmp_path, 1, create(1, "/1"), bytes(bad), create(3, "/3"))
    contents = read_log(tmp_path)
    assert zxids(contents.transactions) == [1]
    assert contents.problems == [f"{path} is damaged at byte {16 + len(create(1, '/1'))}"]


def test_a_torn_record_at_the_very_end_is_tolerated(tmp_path: Path) -> None:
    write(tmp_path, 1, create(1, "/1"), create(2, "/2")[:-4], padding=0)
    contents = read_log(tmp_path)
    assert zxids(contents.transactions) == [1]
    assert contents.problems == []


def test_a_server_that_was_killed_while_it_wrote_goes_on_in_another_file(tmp_path: Path) -> None:
    write(tmp_path, 1, create(1, "/1"), create(2, "/2")[:-4], padding=0)
    write(tmp_path, 2, create(2, "/another"))
    contents = merge([read_log(tmp_path)])
    assert zxids(contents.transactions) == [1, 2]
    assert contents.problems == []


def test_a_record_that_is_damaged_at_the_end_of_a_file_is_missed(tmp_path: Path) -> None:
    bad = bytearray(create(2, "/2"))
    bad[-3] ^= 0xFF
    write(tmp_path, 1, create(1, "/1"), bytes(bad))
    write(tmp_path, 3, create(3, "/3"))
    assert merge([read_log(tmp_path)]).problems == [
        "the transaction logs of ZooKeeper lack zxid 0x2 to 0x2"
    ]


def test_a_foreign_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_bytes(b"something else entirely")
    assert read_log(tmp_path).problems == [
        f"{tmp_path / 'log.1'} is not a ZooKeeper transaction log"
    ]


def test_an_old_server_lists_no_ephemerals_so_they_are_tracked(tmp_path: Path) -> None:
    closed = record(3, -11, b"", cxid=0)
    write(tmp_path, 1, create(1, "/a", ephemeral=True), create(2, "/b"), closed)
    events = list(ZnodeEvents().events(read_log(tmp_path).transactions))
    assert [(event.kind, event.path, event.reason) for event in events[2:]] == [
        ("session-closed", None, "expired"),
        ("znode", "/a", None),
    ]


def test_a_refused_topic_teaches_no_topic_id(tmp_path: Path) -> None:
    topic = text("/brokers/topics/t") + text('{"topic_id":"A"}') + bytes(9)
    parts = struct.pack(">ii", 2, 1) + struct.pack(">i", len(topic)) + topic
    parts += struct.pack(">iii", -1, 4, -110)
    state = text("/brokers/topics/t/partitions/0/state") + text("{}") + bytes(9)
    write(tmp_path, 1, record(1, 14, parts), record(2, 1, state))
    events = list(ZnodeEvents().events(read_log(tmp_path).transactions))
    assert [(event.kind, event.error, event.topic_id) for event in events] == [
        ("znode-refused", "NODEEXISTS", None),
        ("znode-refused", "NODEEXISTS", None),
        ("znode", None, None),
    ]


def test_a_member_says_in_which_epoch_it_is(tmp_path: Path) -> None:
    write(tmp_path, 1, create(1, "/1"))
    assert read_log(tmp_path).current_epoch is None
    (tmp_path / "currentEpoch").write_text("5")
    assert read_log(tmp_path).current_epoch == 5
