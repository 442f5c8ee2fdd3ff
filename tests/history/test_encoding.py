"""What the files of a history tell of what is in them, and how they are cut into row groups."""

from __future__ import annotations

import tempfile
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.history import encoding
from nemesis.history import statistics as told_of_files
from nemesis.history.encoding import PARQUET_OPTIONS, EventsFile, row_groups
from nemesis.history.events import Event
from nemesis.history.row_group import Uniform
from nemesis.history.schema import table
from nemesis.history.stored_row_group import StoredRowGroup

words = st.sampled_from([None, "leader", "follower"])
lists = st.sampled_from([None, [], [1], [1, 2], [2, 1], [1, 2, 3]])
events = st.lists(
    st.builds(
        Event,
        time=st.just(1),
        process=st.just("p"),
        kind=st.sampled_from(["append", "high-watermark", "znode"]),
        node=st.sampled_from([None, -1, 1, 2]),
        role=words,
        isr=lists,
        maximal_isr=lists,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=3))
def test_a_file_tells_the_list_that_all_rows_of_a_kind_have(groups: list[list[Event]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "events.parquet"
        with EventsFile(path) as file:
            for rows in groups:
                file.write(table(rows))
        for index, rows in enumerate(groups):
            group = StoredRowGroup(path, index, 0, len(rows))
            for column in ("isr", "maximal_isr"):
                for kind in ("append", "high-watermark", "znode", "ok"):
                    said = [getattr(event, column) for event in rows if event.kind == kind]
                    alike = bool(said) and said[0] is not None and said == said[:1] * len(said)
                    assert group.known().uniform_list(column, kind) == (said[0] if alike else None)


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=3), st.sampled_from([2, 64]))
def test_a_file_tells_the_word_that_all_rows_of_a_kind_and_node_say(
    groups: list[list[Event]], most: int
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(told_of_files, "MOST_PAIRS", most)
        path = Path(directory) / "events.parquet"
        with EventsFile(path) as file:
            for rows in groups:
                file.write(table(rows))
        for index, rows in enumerate(groups):
            said = {(event.kind, event.node, event.role) for event in rows}
            pairs = {(kind, node) for kind, node, _ in said}
            word = StoredRowGroup(path, index, 0, len(rows)).known().words("role")
            if len(said) > len(pairs) or len(pairs) > most:
                assert word is None
            else:
                assert word is not None
                assert set(word) == said
                assert len(word) == len(said)


@pytest.mark.parametrize(
    "metadata", [None, b"[", b'{"isr": 1}', b'[{"isr": {"append": ["1"]}}]', b"[]"]
)
def test_a_file_that_tells_nothing_intelligible_is_read(
    tmp_path: Path, metadata: bytes | None
) -> None:
    path, rows = tmp_path / "events.parquet", [Event(time=1, process="p", kind="append", isr=[1])]
    with pq.ParquetWriter(path, table(rows).schema, **PARQUET_OPTIONS) as file:
        file.write_table(table(rows))
        if metadata is not None:
            file.add_key_value_metadata({"nemesis.lists": metadata, "nemesis.words": metadata})
    group = StoredRowGroup(path, 0, 0, 1)
    assert group.known().uniform_list("isr", "append") is None
    assert group.known().words("role") is None
    assert group.read(["isr"]).column(0).to_pylist() == [[1]]


def test_a_file_that_leaves_out_columns_reads_as_one_with_them(tmp_path: Path) -> None:
    rows = table(
        [Event(time=time, process="p", kind="ok", seq=time, value=7 * time) for time in range(4)]
    )
    full, part = tmp_path / "full.parquet", tmp_path / "part.parquet"
    columns = ("time", "process", "kind", "seq", "value")
    for path, names in ((full, ()), (part, columns)):
        with EventsFile(path, names) as file:
            file.write(rows)
    expected, group = StoredRowGroup(full, 0, 0, 4), StoredRowGroup(part, 0, 0, 4, columns)
    assert pq.read_schema(part).names == list(columns)
    assert group.read() == expected.read()
    for wanted in (["value", "topic", "isr"], ["isr"], ["time"]):
        assert group.read(wanted) == expected.read(wanted)
    for name in ("topic", "offset", "value", "time", "kind"):
        assert group.known().uniform(name) == expected.known().uniform(name)
        if name not in ("topic", "kind"):
            assert group.known().extent(name) == expected.known().extent(name)
    assert group.known().uniform("isr") == Uniform(None)


@given(
    st.lists(st.tuples(st.sampled_from(["append", "transition"]), st.integers(1, 9)), max_size=8)
)
def test_row_groups_are_cut_around_long_stretches_of_what_is_frequent(
    stretches: list[tuple[str, int]],
) -> None:
    kinds = [kind for kind, length in stretches for _ in range(length)]
    rows = table([Event(time=time, process="p", kind=kind) for time, kind in enumerate(kinds)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "LONG_STRETCH", 3)
        patch.setattr(encoding, "ROW_GROUP_ROWS", 5)
        groups = [group.column("kind").to_pylist() for group in row_groups(rows)]
    assert [kind for group in groups for kind in group] == kinds
    assert all(0 < len(group) <= 5 for group in groups)
    for group in groups:
        runs = [len(list(run)) for kind, run in groupby(group) if kind == "append"]
        assert "transition" not in group or max(runs, default=0) <= 3
