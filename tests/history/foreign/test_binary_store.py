"""Jepsen's ``test.jepsen`` says the same as the EDN beside it; damage costs the block that has it."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.framework.model import Verdict
from nemesis.history.errors import ForeignHistoryError
from nemesis.history.foreign import edn
from nemesis.history.foreign.edn import EdnSet, Keyword, Symbol
from nemesis.history.foreign.fressian import FressianError, Reader
from nemesis.history.foreign.importing import ForeignFile, read_file
from nemesis.history.foreign.names import Names
from tests.history.foreign.binary_files import (
    BIG_VECTOR,
    FRESSIAN,
    PARTIAL_MAP,
    STREAM,
    Reference,
    Tuple2,
    block,
    fressian,
    partial_map,
    store,
    stream,
    vector,
)
from tests.history.foreign.reading import events_of, read
from tests.nemesis.judging.foreign_judge import judged_file

TEXT: Final = """{:type :invoke, :f :write, :value 3, :process 0, :time 1000, :index 0}
{:type :ok, :f :write, :value 3, :process 0, :time 70000, :index 1, :node "n1"}
{:type :invoke, :f :read, :value nil, :process 1, :time 9000000000, :index 2}
{:type :info, :f :start, :value #{"n1" "n2"}, :process :nemesis, :time 9000000001, :index 3}
{:type :ok, :f :read, :value 3, :process 1, :time 9000000300, :index 4}
{:type :invoke, :f :read, :value nil, :process 1, :time 9000000301, :index 5}
{:type :ok, :f :read, :value nil, :process 1, :time 9000000302, :index 6}
"""
FORMS: Final[list[dict[str, Any]]] = [
    {str(key): value for key, value in edn.loads(line).items()} for line in TEXT.splitlines()
]
NAME, HISTORY, RESULTS = Keyword("name"), Keyword("history"), Keyword("results")


def in_chunks(*chunks: bytes, starts: tuple[int, ...]) -> bytes:
    """A store whose history is a vector of these blocks."""
    blocks = dict(enumerate(chunks, start=3))
    entries = zip(starts, blocks, strict=True)
    history = block(BIG_VECTOR, vector(len(FORMS), entries))
    root = block(PARTIAL_MAP, partial_map({NAME: "t", HISTORY: Reference(1)}))
    return store({1: history, 2: root, **blocks}, root=2)


STORE: Final = in_chunks(
    block(STREAM, stream(FORMS[:3])), block(STREAM, stream(FORMS[3:])), starts=(0, 3)
)


def read_store(tmp_path: Path, data: bytes) -> ForeignFile:
    file = tmp_path / "test.jepsen"
    file.write_bytes(data)
    return read_file(file)


def test_a_history_in_chunks_says_what_the_edn_says(tmp_path: Path) -> None:
    file = read_store(tmp_path, STORE)
    assert list(events_of(file, "register", Names())) == list(
        events_of(read(TEXT), "register", Names())
    )
    assert file.is_complete
    assert [operation.line for operation in file.operations] == [1, 2, 3, 4, 5, 6, 7]
    assert [operation.other for operation in file.operations][:2] == [None, {"node": "n1"}]
    assert judged_file(file, "register").verdict is Verdict.INVALID


def test_a_history_of_maps_inside_the_test(tmp_path: Path) -> None:
    """As older versions of Jepsen write it: a list of plain maps, and results in the head of the map."""
    maps = tuple({Keyword(key): value for key, value in form.items()} for form in FORMS)
    head = block(PARTIAL_MAP, partial_map({RESULTS: None}, rest=2))
    rest = block(PARTIAL_MAP, partial_map({HISTORY: Reference(3)}))
    data = store({1: head, 2: rest, 3: block(FRESSIAN, fressian(maps))}, root=1, version=0)
    assert read_store(tmp_path, data).operations == read_store(tmp_path, STORE).operations
    inline = store({1: block(FRESSIAN, fressian({HISTORY: maps}))}, root=1, version=0)
    assert read_store(tmp_path, inline).operations == read_store(tmp_path, STORE).operations


def test_a_damaged_chunk_costs_its_operations(tmp_path: Path) -> None:
    first, second = block(STREAM, stream(FORMS[:3])), block(STREAM, stream(FORMS[3:]))
    spoiled = first[:-1] + bytes([first[-1] ^ 1])
    file = read_store(tmp_path, in_chunks(spoiled, second, starts=(0, 3)))
    assert [operation.index for operation in file.operations] == [3, 4, 5, 6]
    assert "block 3 has a wrong checksum" in " ".join(file.problems.sentences())
    assert file.may_lack_operations()
    torn = block(STREAM, stream(FORMS[3:])[:-1])
    file = read_store(tmp_path, in_chunks(first, torn, starts=(0, 3)))
    assert [operation.index for operation in file.operations] == [0, 1, 2, 3, 4, 5]
    assert "it ends inside a value" in " ".join(file.problems.sentences())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (STORE[:12], "it is cut off"),
        (STORE[:-1], "is cut off"),
        (STORE[:6] + struct.pack(">i", 2) + STORE[10:], "version 2, and 1 is the newest known"),
        (STORE[:10] + bytes(8) + STORE[18:], "was never written"),
        (store({1: block(STREAM, b"")}, root=7), "block 7 is missing"),
        (store({1: block(PARTIAL_MAP, b"\0")}, root=1), "a map is cut off"),
        (store({1: block(FRESSIAN, b"\xf3")}, root=1), "the code 0xf3 is unknown"),
    ],
)
def test_a_store_that_cannot_be_read(data: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ForeignHistoryError, match=reason) as error:
        read_store(tmp_path, data)
    assert "give history.edn" in str(error.value)


@pytest.mark.parametrize(
    "history", [None, Reference(2), Reference(1)], ids=["none", "nil", "a cycle"]
)
def test_a_store_without_operations(history: Any, tmp_path: Path) -> None:
    data = store(
        {
            1: block(FRESSIAN, fressian({HISTORY: history})),
            2: block(FRESSIAN, fressian(None)),
        },
        root=1,
    )
    with pytest.raises(ForeignHistoryError, match="no history of operations"):
        read_store(tmp_path, data)


def test_a_vector_that_contains_itself(tmp_path: Path) -> None:
    root = block(FRESSIAN, fressian({HISTORY: Reference(2)}))
    data = store({1: root, 2: block(BIG_VECTOR, vector(1, [(0, 2)]))}, root=1)
    with pytest.raises(ForeignHistoryError, match="not a type of operations"):
        read_store(tmp_path, data)


WORDS: Final = st.sampled_from(["a", "ok", "jepsen/x", "a-long-word-of-many-letters"])
VALUES: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(-70_000, 70_000)
    | st.floats(allow_nan=False)
    | st.text()
    | WORDS.map(Keyword)
    | WORDS.map(Symbol),
    lambda values: (
        st.lists(values, max_size=10).map(tuple)
        | st.lists(values, max_size=10).map(EdnSet)
        | st.tuples(values, values).map(Tuple2)
        | st.dictionaries(WORDS.map(Keyword), values)
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_what_the_definition_writes_is_read(values: list[Any]) -> None:
    reader = Reader(fressian(*values))
    for value in values:
        returned = reader.value()
        assert returned == value
        assert type(returned) is (tuple if isinstance(value, Tuple2) else type(value))
    assert reader.is_at_end


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xed\x01\x02\xfd", (1, 2)),
        (b"\xee\x01\x02", (1, 2)),
        (b"\xe2\x02ab\xdcab", "abab"),
        (b"\xe2\x01a\xe3\x01b", "ab"),
        (b"\xd8\x01a\xd9\x01b", b"ab"),
        (b"\xc6\xd2\x01\x00", 256),
        (b"\xb0\x02\x07\x08", (7, 8)),
        (b"\xf9\x3f\x00\x00\x00", 0.5),
        (b"\xe6\xcd\xdaa\x80"[:2] + b"\xdba\x80", ("a", "a")),
    ],
)
def test_forms_that_jepsen_seldom_writes(data: bytes, value: Any) -> None:
    assert Reader(data).value() == value


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    reader = Reader(data)
    with suppress(FressianError):
        while not reader.is_at_end:
            reader.value()


def test_values_that_are_nested_too_deep() -> None:
    for code in (b"\xe5", b"\xed", b"\xee", b"\xcd", b"\xc1"):
        with pytest.raises(FressianError, match="nested more than"):
            Reader(code * 5000).value()
