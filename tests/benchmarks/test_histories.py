"""Generated histories: in order, of the size asked for, seeded, and broken exactly where they were broken."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from benchmarks.histories.anomalies import ANOMALIES, Anomaly
from benchmarks.histories.generate import in_memory, write
from benchmarks.histories.shape import Shape
from benchmarks.histories.writer import HistoryWriter
from nemesis.checkers import select
from nemesis.checkers.checking import check
from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.encoding import ROW_GROUP_ROWS
from nemesis.history.errors import MissingHistoryError
from nemesis.history.reader import open_history
from nemesis.history.row_group import RowGroup
from nemesis.history.schema import WORD, ordered

CORE = (
    "single-controller",
    "controller-epoch-grows",
    "stale-controller-fenced",
    "broker-epoch-fenced",
    "leader-epoch-grows",
    "one-leader-per-epoch",
    "leader-from-isr",
    "legal-transition",
    "hw-bounded",
    "hw-grows",
)
SMALL = Shape(300, topics=2, partitions=2, brokers=4)

shapes = st.builds(
    Shape,
    st.integers(400, 600),
    topics=st.integers(1, 3),
    partitions=st.integers(1, 3),
    hot_share=st.sampled_from([None, 0.5, 0.9]),
    brokers=st.integers(3, 6),
    replication_factor=st.integers(2, 3),
    terms=st.integers(3, 5),
    seed=st.integers(0, 2**31),
)


def broken(outcome: Outcome) -> dict[str, int]:
    return dict(Counter(finding.property for finding in outcome.broken()))


def plain(rows: pa.Table) -> pa.Table:
    """Without dictionaries, whose words may be numbered otherwise."""
    fields = [
        field.with_type(pa.string()) if field.type == WORD else field for field in rows.schema
    ]
    return rows.cast(pa.schema(fields)).combine_chunks()


@settings(max_examples=20, deadline=None)
@given(shapes)
def test_the_rows_are_in_the_order_of_a_history_and_every_check_is_content(shape: Shape) -> None:
    history, _ = in_memory(shape)
    rows = history.table()
    assert rows.equals(ordered(rows))
    outcome = check(history, select(CORE))
    assert [(result.property, result.verdict) for result in outcome.results] == [
        (name, Verdict.VALID) for name in CORE
    ]
    assert broken(check(history, select())) == {}


@pytest.mark.parametrize("name", ANOMALIES)
@settings(max_examples=5, deadline=None, phases=[Phase.generate])
@given(shape=shapes, share=st.floats(0, 0.999))
def test_each_anomaly_is_named_by_its_property_and_by_no_other(
    name: str, shape: Shape, share: float
) -> None:
    largest = max(shape.all_partitions(), key=lambda partition: partition.records)
    first, last = largest.first_record(1) + 4, largest.first_record(2) - 1
    anomaly = Anomaly(name, largest.number, first + int(share * (last - first)))
    history, [injected] = in_memory(shape, [anomaly])
    outcome = check(history, select(CORE))
    assert broken(outcome).keys() == {ANOMALIES[name].property} == {injected.property}
    [changed] = history.rows([injected.row]).values()
    assert any(changed in finding.events for finding in outcome.broken())


def test_the_same_arguments_give_the_same_rows_and_another_seed_others() -> None:
    rows = in_memory(SMALL)[0].table()
    assert rows.equals(in_memory(SMALL)[0].table())
    other = Shape(300, topics=2, partitions=2, brokers=4, seed=1)
    assert not rows.equals(in_memory(other)[0].table())


def test_a_written_history_is_the_one_in_memory(tmp_path: Path) -> None:
    shape = Shape(40_000, topics=2, hot_share=0.9)
    anomalies = [Anomaly("mark-above-a-log", 0, 10_000)]
    injected = write(tmp_path / "history", shape, anomalies)
    history, same = in_memory(shape, anomalies)
    assert injected == same
    stored = open_history(tmp_path / "history")
    assert plain(stored.table()).equals(plain(history.table()))
    assert len(stored.row_groups) > 1
    assert all(group.rows <= ROW_GROUP_ROWS for group in stored.row_groups)


def test_elections_between_long_stretches_are_apart_to_the_last_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "history", Shape(24_000, partitions=2), [])
    groups = open_history(tmp_path / "history").row_groups
    electing = [group for group in groups if "become-leader" in kinds_of(group)]
    assert len(electing) == 2 * 3
    assert all(group.rows < 100 for group in electing)


def kinds_of(group: RowGroup) -> list[str]:
    return group.read(["kind"]).column("kind").to_pylist()  # type: ignore[no-any-return]


def test_the_hot_partition_has_its_share() -> None:
    sizes = [
        partition.records
        for partition in Shape(1_000, partitions=11, hot_share=0.8).all_partitions()
    ]
    assert (sizes[0], sum(sizes), set(sizes[1:])) == (800, 1_000, {20})
    assert (
        sum(partition.records for partition in Shape(1_000, partitions=7).all_partitions()) == 1_000
    )


def test_an_anomaly_that_finds_no_place_is_refused() -> None:
    with pytest.raises(LookupError, match="no place"):
        in_memory(SMALL, [Anomaly("second-leader", record=1_000_000)])


def test_what_was_not_finished_is_no_history(tmp_path: Path) -> None:
    def interrupted() -> None:
        with HistoryWriter(tmp_path / "history") as writer:
            writer.write(in_memory(SMALL)[0].table())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    with pytest.raises(MissingHistoryError):
        open_history(tmp_path / "history")
