"""Generated histories of registers; both engines, wherever the history is cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.histories.registers import Registers, tables
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.checking import check
from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.model import Result
from nemesis.checkers.linearizable.queues import TotalQueue
from nemesis.checkers.linearizable.registers import LinearizableRegister
from nemesis.checkers.linearizable.sets import SetFull
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.schema import ordered
from nemesis.history.spark import stop
from tests.checkers.cut_histories import history_of, same

NAME = LinearizableRegister().name
SMALL = Registers(6_000, keys=3, clients=6, seed=5)


def judged(rows: pa.Table, cuts: list[int]) -> Result:
    edges = sorted({0, rows.num_rows, *cuts})
    groups = [
        MemoryRowGroup(rows.slice(start, stop - start), start) for start, stop in pairwise(edges)
    ]
    (result,) = run_checks(groups, [LinearizableRegister()])
    return result


@pytest.fixture(scope="module")
def spoiled() -> pa.Table:
    return pa.concat_tables(tables(Registers(6_000, keys=3, clients=6, stale=(1_500, 4_500))))


def test_a_generated_history_is_in_order_and_true() -> None:
    rows = pa.concat_tables(tables(SMALL)).unify_dictionaries().combine_chunks()
    assert rows.num_rows == 12_000
    assert rows.equals(ordered(rows))
    result = judged(rows, [])
    assert (result.verdict, result.finding_count) == ("valid", 0)
    assert result.checked > 2_500


def test_stale_reads_are_found_where_they_were_put(spoiled: pa.Table) -> None:
    result = judged(spoiled, [])
    assert result.finding_count == 2
    operations = spoiled.column("op").to_pylist()
    collected = [
        {operations[event["row"]] for event in finding.events} for finding in result.findings
    ]
    assert [stale in proof for stale, proof in zip((1_500, 4_500), collected, strict=True)] == [
        True
    ] * 2


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, 11_999), max_size=8))
def test_no_cut_changes_the_answer(spoiled: pa.Table, cuts: list[int]) -> None:
    assert judged(spoiled, cuts) == judged(spoiled, [])


@pytest.fixture(scope="module")
def _stop_spark() -> Iterator[None]:
    yield
    stop()


@pytest.mark.e2e
@pytest.mark.usefixtures("_stop_spark")
def test_both_engines_say_the_same(tmp_path: Path) -> None:
    calls = (
        Call("write", 1, 2, value=5),
        Call("read", 3, 4),
        Call("add", 1, 2, value=5),
        Call("enqueue", 1, 2, value=5),
        Call("drain", 3, 4, values=(6,)),
    )
    directory = history_of(tmp_path, events(*calls), [3, 7])
    checks = [LinearizableRegister(), SetFull(), TotalQueue()]
    inline, spark = (check(directory, checks, engine=engine) for engine in ("inline", "spark"))
    assert same(inline) == same(spark)
    assert {result.property for result in inline.results if result.findings} == {
        NAME,
        "set-lost",
        "queue-lost",
        "queue-unexpected",
    }
