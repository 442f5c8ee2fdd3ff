"""Texts are divided at line ends, and a text that changes meanwhile is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.foreign.plain.columns import OBJECT
from nemesis.history.foreign.plain.reading import scanned
from nemesis.history.foreign.plain.texts import (
    Chunk,
    FileText,
    MemoryText,
    buffer_for,
    divide,
    lines_of,
)


def in_memory(content: bytes) -> MemoryText:
    return MemoryText(np.frombuffer(content, dtype=np.uint8))


@given(st.text("ab\n", min_size=1).map(str.encode), st.integers(1, 9))
def test_chunks_are_the_text_in_whole_lines(content: bytes, chunk_bytes: int) -> None:
    text = in_memory(content)
    chunks = divide(text, chunk_bytes)
    buffer = buffer_for(chunks)

    # The buffer is used again: each part is copied before the next one is read.
    lines = [
        lines.tobytes() for chunk in chunks if (lines := lines_of(text, chunk, buffer)) is not None
    ]
    assert b"".join(lines) == content.removesuffix(b"\n") + b"\n"
    assert all(part.endswith(b"\n") for part in lines)
    assert [chunk.first_line for chunk in chunks] == [
        sum(part.count(b"\n") for part in lines[:number]) for number in range(len(lines))
    ]


def test_an_empty_text_has_no_chunks() -> None:
    assert divide(in_memory(b"")) == []


@pytest.mark.parametrize("content", [b"a\nb", b"a\nb\n\n", b"abcde", b"ab\ncd"])
def test_a_file_that_changes_after_its_division_is_noticed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_bytes(b"a\nb\n\n")
    with path.open("rb", buffering=0) as file:
        text = FileText(file)
        [chunk] = divide(text)
        assert chunk == Chunk(0, 5, 0, 3)
        path.write_bytes(content)
        read = scanned(text, [chunk], OBJECT, most_others=3)
    assert (read is not None) is (content == b"a\nb\n\n")
