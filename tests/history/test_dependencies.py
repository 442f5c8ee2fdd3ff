"""Dependencies between columns, as the files of a history record them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.framework.columns import Columns
from nemesis.history.dependencies import NO_DEPENDENCIES, Dependencies
from nemesis.history.encoding import PARQUET_OPTIONS, EventsFile
from nemesis.history.events import Event
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.schema import SCHEMA, table
from nemesis.history.stored_row_group import StoredRowGroup

lists = st.sampled_from([None, [], [1], [1, 2], [2, 1], [2, 3]])
events = st.lists(
    st.builds(
        Event,
        time=st.just(1),
        process=st.sampled_from(["a", "b"]),
        kind=st.sampled_from(["invoke", "ok"]),
        f=st.sampled_from([None, "send", "poll"]),
        acks=st.sampled_from([None, -1, 1]),
        offset=st.sampled_from([None, 1, 2]),
        offsets=lists,
        values=lists,
    ),
    min_size=1,
    max_size=5,
)


def depends(rows: list[Event], column: str, of: str) -> bool:
    """Whether all rows have a value in one column, and rows with equal values have equal values in the other."""
    pairs = {(getattr(row, of), getattr(row, column)) for row in rows}
    words = [word for word, _ in pairs]
    return None not in words and len(words) == len(set(words))


def run_on(row: Event) -> bool:
    offsets, values = row.offsets or [], row.values or []
    if len(offsets) != len(values):
        return False
    first = row.offset
    return not offsets or (first is not None and offsets == [*range(first, first + len(offsets))])


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=1, max_size=3))
def test_a_file_records_dependencies_and_columns_agree_with_it(groups: list[list[Event]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "events.parquet"
        with EventsFile(path) as file:
            for rows in groups:
                file.write(table(rows))
        for index, rows in enumerate(groups):
            group = StoredRowGroup(path, index, 0, len(rows))
            dependencies = group.known().dependencies()
            assert set(dependencies.words) == {
                name for name, of in (("f", "process"), ("acks", "f")) if depends(rows, name, of)
            }
            assert set(dependencies.kinds) == {row.kind for row in rows}
            assert dependencies.offsets_run_on == all(map(run_on, rows))
            stored = Columns.of(group, len(rows), SCHEMA.names)
            plain = Columns.of(MemoryRowGroup(table(rows)), len(rows), SCHEMA.names)
            codes, words = stored.words("f")
            assert [[*words, None][code] for code in codes] == [row.f for row in rows]
            assert np.array_equal(stored.numbers("acks", -9), plain.numbers("acks", -9))


@pytest.mark.parametrize("metadata", [None, b"[", b'{"f": 1}', b'[{"words": 1}]', b"[]"])
def test_a_file_without_readable_dependencies_is_read(
    tmp_path: Path, metadata: bytes | None
) -> None:
    path, rows = tmp_path / "events.parquet", [Event(time=1, process="p", kind="ok", f="send")]
    with pq.ParquetWriter(path, table(rows).schema, **PARQUET_OPTIONS) as file:
        file.write_table(table(rows))
        if metadata is not None:
            file.add_key_value_metadata({"nemesis.follows": metadata})
    group = StoredRowGroup(path, 0, 0, 1)
    assert group.known().dependencies() == NO_DEPENDENCIES
    assert Columns.of(group, 1, SCHEMA.names).values("f") == ["send"]


def test_a_column_that_contradicts_its_recorded_dependency_is_read() -> None:
    class Mistaken(MemoryRowGroup):
        def dependencies(self) -> Dependencies:
            return Dependencies({"f": ("process", {"other": "poll"}), "acks": ("f", {"poll": 1})})

    rows = table([Event(time=1, process="p", kind="ok", f="send", acks=-1)])
    columns = Columns.of(Mistaken(rows), 1, SCHEMA.names)
    assert columns.values("f") == ["send"]
    assert columns.numbers("acks", 0).tolist() == [-1]
