"""Histories of sessions without times, in the forms of dbcop, PolySI and Cobra: all say the same."""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.model import Verdict
from nemesis.history.errors import HistoryError
from nemesis.history.foreign.importing import ForeignFile, read_file, sha256_of, size_of
from nemesis.history.foreign.sessions import NOTE, is_directory_of_logs
from tests.nemesis.judging.foreign_judge import judged_file

Micro = tuple[str, int, int]
Transaction = tuple[bool, list[Micro]]
Sessions = list[list[Transaction]]

SKEW: Sessions = [
    [(True, [("w", 1, 10), ("w", 2, 20)])],
    [(True, [("r", 1, 10), ("r", 2, 20), ("w", 1, 11)])],
    [(True, [("r", 1, 10), ("r", 2, 20), ("w", 2, 21)])],
    [(True, [("r", 1, 11), ("r", 2, 21)])],
]
"""Two transactions read both keys, and each writes another one: snapshot isolation allows that."""
FRACTURED: Sessions = [
    [(True, [("w", 1, 10), ("w", 2, 20)])],
    [(True, [("r", 1, 10), ("r", 2, 0)])],
]
ABORTED: Sessions = [[(False, [("w", 1, 10)])], [(True, [("r", 1, 10)])]]
STALE: Sessions = [[(True, [("w", 1, 10)]), (True, [("r", 1, 0)])]]
"""A session does not read what it wrote before."""
RIGHT: Sessions = [
    [(True, [("w", 1, 10)]), (True, [("r", 1, 10)])],
    [(True, [("r", 1, 0), ("r", 2, 0)])],
]


def long(value: int) -> bytes:
    return struct.pack("<Q", value)


def bincode(sessions: Sessions) -> bytes:
    """dbcop's binary form: five counts, three texts, then sessions, transactions and events by length."""
    content = b"".join(map(long, (0, 1, 2, 3, 4)))
    content += b"".join(long(len(text)) + text for text in (b"info", b"2024", b"2025"))
    content += long(len(sessions))
    for session in sessions:
        content += long(len(session))
        for is_committed, micros in session:
            content += long(len(micros))
            for f, key, value in micros:
                content += bytes([f == "w"]) + long(key) + long(value) + b"\1"
            content += bytes([is_committed])
    return content


def dbcop_json(sessions: Sessions, *, is_compact: bool = False) -> bytes:
    def event(micro: Micro) -> Any:
        f, key, value = micro
        version = value if f == "w" or value else None
        if is_compact:
            return [f, key, version]
        return {"Write" if f == "w" else "Read": {"variable": key, "version": version}}

    data = [
        [{"events": list(map(event, micros)), "committed": done} for done, micros in session]
        for session in sessions
    ]
    return json.dumps(
        {"params": {"id": 0}, "data": data} if is_compact else data, indent=1
    ).encode()


def older_json(sessions: Sessions) -> bytes:
    data = [
        [
            {
                "events": [
                    {"write": f == "w", "variable": key, "value": value or None, "success": True}
                    for f, key, value in micros
                ],
                "success": done,
            }
            for done, micros in session
        ]
        for session in sessions
    ]
    return json.dumps(data).encode()


def hist(sessions: Sessions) -> bytes:
    def event(micro: Micro) -> str:
        f, key, value = micro
        return f"k{key}:={value}" if f == "w" else f"k{key}=={value or '?'}"

    def text(transaction: Transaction) -> str:
        return f"[{' '.join(map(event, transaction[1]))}]{'' if transaction[0] else '!'}"

    return (
        b"// a comment\n"
        + "\n---\n".join(" ".join(map(text, session)) for session in sessions).encode()
    )


def polysi(sessions: Sessions) -> bytes:
    lines, number = [], 0
    for process, session in enumerate(sessions):
        for _, micros in session:
            number += 1
            lines += [f"{f}({key},{value},{process},{number})\n" for f, key, value in micros]
    return "".join(lines).encode()


FORMS: dict[str, Callable[[Sessions], bytes]] = {
    "bincode": bincode,
    "json": dbcop_json,
    "compact": lambda sessions: dbcop_json(sessions, is_compact=True),
    "older": older_json,
    "hist": hist,
    "compressed": lambda sessions: gzip.compress(dbcop_json(sessions)),
}


def cobra(directory: Path, sessions: Sessions) -> Path:
    directory.mkdir()
    number = 0
    for process, session in enumerate(sessions):
        content = b""
        for _, micros in session:
            number += 1
            content += b"S" + struct.pack(">Q", number)
            for f, key, value in micros:
                if f == "w":
                    content += b"W" + struct.pack(">3Q", value, key, 7)
                else:
                    writer, write = (5, value) if value else (0xBEBEEBEE, 0xBEBEEBEE)
                    content += b"R" + struct.pack(">4Q", writer, write, key, 7)
            content += b"C" + struct.pack(">Q", number)
        (directory / f"T{process}.log").write_bytes(content)
    return directory


def written(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "history"
    file.write_bytes(content)
    return file


def said(file: ForeignFile) -> list[tuple[Any, ...]]:
    return [
        (each.type, each.process, [tuple(micro) for micro in each.value])
        for each in file.operations
    ]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_say_the_same(form: str, tmp_path: Path) -> None:
    file = read_file(written(tmp_path, FORMS[form](RIGHT)))
    k1, k2 = ("k1", "k2") if form == "hist" else (1, 2)
    assert said(file) == [
        ("invoke", 0, [("w", k1, 10)]),
        ("ok", 0, [("w", k1, 10)]),
        ("invoke", 0, [("r", k1, None)]),
        ("ok", 0, [("r", k1, 10)]),
        ("invoke", 1, [("r", k1, None), ("r", k2, None)]),
        ("ok", 1, [("r", k1, None), ("r", k2, None)]),
    ]
    assert not file.has_real_time
    assert not file.may_lack_operations()
    assert NOTE in file.problems.notes()


@pytest.mark.parametrize("form", FORMS)
def test_verdicts(form: str, tmp_path: Path) -> None:
    def verdict(sessions: Sessions, model: str | None = None) -> Verdict:
        file = written(tmp_path, FORMS[form](sessions))
        return judged_file(read_file(file), "rw-register", model).verdict

    assert verdict(RIGHT) is Verdict.VALID
    assert verdict(SKEW) is Verdict.INVALID
    assert verdict(SKEW, "snapshot-isolation") is Verdict.VALID
    assert verdict(FRACTURED, "read-atomic") is Verdict.INVALID
    assert verdict(ABORTED, "read-committed") is Verdict.INVALID
    assert verdict(STALE) is Verdict.INVALID
    assert verdict(STALE, "serializable") is Verdict.VALID


def test_polysis_lines(tmp_path: Path) -> None:
    file = read_file(written(tmp_path, polysi(FRACTURED)))
    assert [each.line for each in file.operations] == [1, 1, 3, 3]
    assert judged_file(file, "rw-register", "read-atomic").verdict is Verdict.INVALID
    valid = read_file(written(tmp_path, polysi(RIGHT)))
    assert judged_file(valid, "rw-register").verdict is Verdict.VALID


def test_each_of_polysis_sessions_may_number_its_transactions_by_itself(tmp_path: Path) -> None:
    by_session = b"w(1,10,0,1)\nr(1,0,1,1)\nw(1,11,0,2)\nr(1,11,1,2)\n"
    file = read_file(written(tmp_path, by_session))
    assert [each.process for each in file.operations if each.is_invoke] == [0, 1, 0, 1]
    assert judged_file(file, "rw-register").verdict is Verdict.VALID


@pytest.mark.parametrize("mark", ["", ', "committed": null'])
def test_without_a_mark_the_outcome_of_a_transaction_is_unknown(mark: str, tmp_path: Path) -> None:
    def verdict(mark: str) -> Verdict:
        writer = (
            f'[{{"events": [["w", 1, 10]]{mark}}}, {{"events": [["w", 1, 11]], "committed": true}}]'
        )
        reader = '[{"events": [["r", 1, 10], ["r", 2, 0]], "committed": true}]'
        file = read_file(written(tmp_path, f"[{writer}, {reader}]".encode()))
        return judged_file(file, "rw-register").verdict

    assert verdict(mark) is Verdict.VALID
    assert verdict(', "committed": false') is Verdict.INVALID


def test_zero_is_a_value_where_it_was_written(tmp_path: Path) -> None:
    text = b"w(1,0,0,1)\nr(1,0,1,2)\nr(2,0,1,2)\n"
    file = read_file(written(tmp_path, text))
    assert said(file)[-1] == ("ok", 1, [("r", 1, 0), ("r", 2, None)])


@pytest.mark.parametrize(
    ("form", "absent"), [(dbcop_json, b"null"), (older_json, b"null"), (hist, b"?")]
)
def test_version_zero_is_the_initial_value(
    form: Callable[[Sessions], bytes], absent: bytes, tmp_path: Path
) -> None:
    for sessions in (RIGHT, STALE):
        content = form(sessions)
        expected = said(read_file(written(tmp_path, content)))
        assert absent in content
        assert said(read_file(written(tmp_path, content.replace(absent, b"0")))) == expected


def test_the_version_zero_of_dbcop_was_written_by_no_transaction(tmp_path: Path) -> None:
    file = read_file(written(tmp_path, b"[x==0 x:=1]\n---\n[x==0 x:=2]\n"))
    assert judged_file(file, "rw-register", "causal").verdict is Verdict.VALID


def test_cobras_directory(tmp_path: Path) -> None:
    directory = cobra(tmp_path / "logs", RIGHT)
    assert is_directory_of_logs(directory)
    assert judged_file(read_file(directory), "rw-register").verdict is Verdict.VALID
    assert len(sha256_of(directory)) == 64
    assert size_of(directory) == 94 + 84
    skew = read_file(cobra(tmp_path / "skew", SKEW))
    assert judged_file(skew, "rw-register").verdict is Verdict.INVALID
    with (directory / "T1.log").open("ab") as log:
        log.write(b"S" + struct.pack(">Q", 99) + b"W" + struct.pack(">3Q", 70, 1, 0))
    unfinished = read_file(directory)
    assert unfinished.operations[-1].type == "info"
    (directory / "T1.log").write_bytes(b"S123")
    with pytest.raises(HistoryError, match="cut off or not a log"):
        read_file(directory)


@pytest.mark.parametrize(
    "content",
    [
        b'[[{"events": [{"Swap": {}}], "committed": true}]]',
        b'[[{"events": 7, "committed": true}]]',
        b'[[{"events": [',
        b'{"params": {}, "data": 3}',
        b"w(1,2,3,4)\nnot an operation\n",
        b"[x:=1]\nx:=2\n",
        b"[x:=1 y>3]\n",
        b"[[]]",
    ],
)
def test_what_is_not_of_its_form_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(HistoryError):
        read_file(written(tmp_path, content))


@given(st.binary(max_size=200))
def test_other_bytes_are_never_an_internal_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history"
        for prefix in (b"", bincode(RIGHT)[:90], b'[[{"events": ', b"w(1,2,3,4)\n"):
            file.write_bytes(prefix + content)
            try:
                read_file(file)
            except HistoryError:
                continue
