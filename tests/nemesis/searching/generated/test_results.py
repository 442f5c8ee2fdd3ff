"""The file of results: appended, read again, refused when it belongs to something else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nemesis.searching.generated.results import ResultFile, Status, digest_of_code, read_results
from nemesis.support.errors import UsageError
from tests.nemesis.searching.generated.records import HEADER, record

A, B = record("a", Status.KILLED, "lost-write"), record("b", Status.SURVIVED)


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "new" / "results.jsonl", HEADER)
    assert file.read() == {}
    file.append(A)
    file.append(B)
    assert file.read() == {"a": A, "b": B}
    assert A.killed_by == ("lost-write",)


def test_a_line_that_was_not_finished_is_left_out(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl", HEADER)
    file.append(A)
    with file.path.open("ab") as opened:
        opened.write(msgspec.json.encode(B)[:20])
    assert file.read() == {"a": A}


def test_results_of_other_code_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    ResultFile(path, HEADER).append(A)
    other = msgspec.structs.replace(HEADER, code="other")
    with pytest.raises(UsageError, match="choose another file with --results"):
        ResultFile(path, other).read()


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text("hello\n")
    with pytest.raises(UsageError, match="expected results of generated mutants"):
        read_results(path)


def test_the_digest_covers_names_and_texts(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    before = digest_of_code([tmp_path])
    assert digest_of_code([tmp_path]) == before
    (tmp_path / "a.py").write_text("2")
    assert digest_of_code([tmp_path]) != before
