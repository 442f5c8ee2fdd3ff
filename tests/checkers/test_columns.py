"""Columns: the same whether read from a file or at hand, whole or in parts of parts, told by statistics or decoded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.framework import columns
from nemesis.checkers.framework.dependencies import looked_up
from nemesis.checkers.framework.segment import Segment
from nemesis.history.encoding import PARQUET_OPTIONS, EventsFile
from nemesis.history.errors import DamagedHistoryError
from nemesis.history.events import Event
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.row_group import Uniform
from nemesis.history.schema import table
from nemesis.history.statistics import UniformWord
from nemesis.history.stored_row_group import StoredRowGroup

NAMES = ("node", "partition", "topic", "role", "isr", "original", "session")

small = st.sampled_from([None, 0, 1, 2])
far = st.sampled_from([None, -(2**62), 3, 2**62])
words = st.sampled_from([None, "a", "b"])
events = st.lists(
    st.builds(
        Event,
        time=st.just(1),
        process=st.just("p"),
        kind=st.sampled_from(["append", "ok"]),
        node=small,
        partition=st.just(7),
        topic=words,
        role=st.none(),
        isr=st.sampled_from([None, [], [1, 2]]),
        original=words,
        session=far,
    ),
    min_size=1,
    max_size=30,
)


def stored(directory: Path, rows: list[Event]) -> StoredRowGroup:
    path = directory / "events.parquet"
    pq.write_table(table(rows), path, **PARQUET_OPTIONS)
    return StoredRowGroup(path, 0, 0, len(rows))


def same_classes(codes: list[int], values: list[Any]) -> bool:
    """Whether two lists say equal things at the same places."""
    pairs = {(code, repr(value)) for code, value in zip(codes, values, strict=True)}
    return len(pairs) == len({code for code, _ in pairs}) == len({value for _, value in pairs})


@settings(max_examples=30, deadline=None)
@given(events, st.data())
@pytest.mark.parametrize("few", [0, columns.FEW_ROWS])
def test_a_part_of_a_file_says_what_its_events_say(
    tmp_path_factory: pytest.TempPathFactory, few: int, rows: list[Event], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "FEW_ROWS", few)
        it_says_what_its_events_say(tmp_path_factory, rows, data)


def it_says_what_its_events_say(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Event], data: st.DataObject
) -> None:
    segment = Segment.of(stored(tmp_path_factory.mktemp("columns"), rows))
    expected = list(rows)
    for _ in range(data.draw(st.integers(0, 3))):
        if data.draw(st.booleans()):
            start = data.draw(st.integers(0, len(expected)))
            stop = data.draw(st.integers(start, len(expected)))
            segment, expected = segment.slice(start, stop), expected[start:stop]
        else:
            kept = [index for index in range(len(expected)) if data.draw(st.booleans())]
            segment = segment.take(np.array(kept, dtype=np.int64))
            expected = [expected[index] for index in kept]
    if data.draw(st.booleans()):
        segment = segment.only({"append", "fail"})
        expected = [event for event in expected if event.kind == "append"]
    for name in data.draw(st.permutations(NAMES)):
        values = [getattr(event, name) for event in expected]
        assert segment.values(name) == values
        if name in ("node", "partition", "session"):
            filled = [-1 if value is None else value for value in values]
            assert segment.numbers(name).tolist() == filled
            assert same_classes(segment.columns.dense_codes(name).tolist(), values)
        if name in ("topic", "role"):
            codes, spoken = segment.codes(name)
            assert [None if code < 0 else spoken[code] for code in codes] == values
            assert same_classes(segment.columns.dense_codes(name).tolist(), values)


def test_statistics_tell_what_all_rows_say(tmp_path: Path) -> None:
    rows = [
        Event(time=1, process="p", kind="ok", node=1, topic="t", partition=3, isr=[]),
        Event(time=2, process="p", kind="ok", topic="t", partition=3, key=1),
        Event(time=3, process="p", kind="ok", topic="t", partition=4, node=1),
    ]
    group = stored(tmp_path, rows)
    names = ("topic", "error", "node", "partition", "isr", "original", "time", "key")
    assert [group.known().uniform(name) for name in names] == [
        Uniform("t"),
        Uniform(None),
        None,
        None,
        None,
        Uniform(None),
        None,
        None,
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "high-watermark", "ok"]),
            st.sampled_from([None, -1, 1, 2, 300]),
        ),
        min_size=1,
        max_size=20,
    ),
    st.data(),
)
def test_words_that_follow_from_kind_and_node_are_what_the_rows_say(
    tmp_path_factory: pytest.TempPathFactory,
    places: list[tuple[str, int | None]],
    data: st.DataObject,
) -> None:
    role_of = {fromkey: data.draw(words) for fromkey in dict.fromkeys(places)}
    rows = [
        Event(time=1, process="p", kind=kind, node=node, role=role_of[kind, node])
        for kind, node in places
    ]
    path = tmp_path_factory.mktemp("words") / "events.parquet"
    with EventsFile(path) as file:
        file.write(table(rows))
    segment = Segment.of(StoredRowGroup(path, 0, 0, len(rows)))
    assert segment.values("role") == [row.role for row in rows]
    part = segment.slice(len(rows) // 2, len(rows))
    assert part.values("role") == [row.role for row in rows[len(rows) // 2 :]]


LEADER_AND_FOLLOWER = [UniformWord("append", 1, "leader"), UniformWord("append", 2, "follower")]


@pytest.mark.parametrize(
    ("kinds", "nodes", "result"),
    [
        (["append", "append", "append"], [1, 2, 1], ["leader", "follower", "leader"]),
        (["append", "append"], [1, 3], None),
        (["append", "append"], [1, 0], None),
        (["append", "append"], [1, None], None),
        (["append", "ok"], [1, 1], None),
    ],
)
def test_words_are_looked_up_only_where_all_of_them_are_told(
    kinds: list[str], nodes: list[int | None], result: list[str] | None
) -> None:
    columns = Segment.starting_at(
        table(
            [
                Event(time=1, process="p", kind=kind, node=node)
                for kind, node in zip(kinds, nodes, strict=True)
            ]
        ),
        0,
    ).columns
    looked = looked_up(LEADER_AND_FOLLOWER, columns.words("kind"), columns.stored("node"))
    if result is None:
        assert looked is None
    else:
        assert looked is not None
        codes, said = looked
        assert [said[code] for code in codes] == result


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    group = stored(tmp_path, [Event(time=1, process="p", kind="ok", node=1)])
    segment = Segment.of(group)
    assert isinstance(group.path, Path)
    group.path.unlink()
    with pytest.raises(DamagedHistoryError):
        segment.values("process")


class CountingRowGroup(MemoryRowGroup):
    """Counts how often it is read."""

    reads: ClassVar[list[list[str]]]

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        self.reads.append(list(columns or ()))
        return super().read(columns)


class FarRowGroup(CountingRowGroup):
    is_far = True


@pytest.mark.parametrize(
    ("kind_of_group", "few"), [(FarRowGroup, 0), (CountingRowGroup, columns.FEW_ROWS)]
)
def test_what_is_far_away_or_little_is_read_at_once(
    kind_of_group: type[CountingRowGroup], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "FEW_ROWS", few)
    monkeypatch.setattr(CountingRowGroup, "reads", [], raising=False)
    rows = table([Event(time=1, process="p", kind="ok", node=1, offset=2)])
    segment = Segment.of(kind_of_group(rows), ("kind", "node", "offset", "zxid"))
    assert segment.values("kind") == ["ok"]
    assert segment.numbers("node").tolist() == [1]
    assert segment.numbers("zxid").tolist() == [-1]
    assert CountingRowGroup.reads == [["kind", "node", "offset"]]
