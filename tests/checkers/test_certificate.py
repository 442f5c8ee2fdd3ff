"""A partition that is judged in rounds of tasks comes to what one walk over it comes to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nemesis.checkers.framework.engine import run_checks
from nemesis.checkers.framework.property import property_names
from nemesis.checkers.log import (
    ClientLog,
)
from nemesis.history.encoding import EventsFile
from nemesis.history.events import Event, Kind
from nemesis.history.memory import MemoryRowGroup
from nemesis.history.schema import ordered, table
from nemesis.history.stored_row_group import StoredRowGroup
from tests.checkers.anomalies import ANOMALIES, Spoil
from tests.checkers.divided_partitions import PARTITIONED, WALKED, results, small_cells
from tests.checkers.generated_histories import HISTORIES, blocks, correct_history, spoiled_history
from tests.checkers.honest_histories import cuts, honest_history, steps


def agree(events: list[Event], cut: Sequence[int]) -> None:
    assert results(events, cut, PARTITIONED) == results(events, cut, WALKED)


@settings(max_examples=25)
@given(steps, cuts, st.integers(1, 4))
def test_of_an_honest_cluster(taken: list[tuple[int, int]], cut: list[int], bits: int) -> None:
    events = honest_history(taken)
    with small_cells(bits) as whole:
        agree(events, cut)
        assert ("t", 0) not in whole or not one_at_a_time(events)


def one_at_a_time(events: Iterable[Event]) -> bool:
    """Whether every process waits for an operation to complete before it begins the next."""
    busy: set[str] = set()
    for event in events:
        if event.kind == Kind.INVOKE:
            if event.process in busy:
                return False
            busy.add(event.process)
        elif event.kind in {Kind.OK, Kind.FAIL, Kind.INFO}:
            busy.discard(event.process)
    return True


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(spoil, id=f"{name}/{spoil.__name__}")
        for name in property_names(ClientLog)
        for spoil in ANOMALIES[name]
    ],
)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(steps, cuts, st.integers(1, 4), st.data())
def test_of_one_anomaly(
    spoil: Spoil, taken: list[tuple[int, int]], cut: list[int], bits: int, data: st.DataObject
) -> None:
    def choose(positions: Sequence[int]) -> int:
        assume(len(positions) > 0)
        return data.draw(st.sampled_from(positions))

    spoiled = spoil(honest_history(taken), choose)
    assume(spoiled is not None)
    assert spoiled is not None
    with small_cells(bits):
        agree(spoiled, cut)


@settings(max_examples=25, deadline=None)
@given(steps, cuts, st.integers(1, 4), st.data())
def test_of_a_history_in_files(
    taken: list[tuple[int, int]], cut: list[int], bits: int, data: st.DataObject
) -> None:
    events = honest_history(taken)
    positions = [index for index, event in enumerate(events) if event.f in ("send", "poll")]
    for position in (
        data.draw(st.lists(st.sampled_from(positions), max_size=2)) if positions else ()
    ):
        events[position] = data.draw(spoiled(events[position]))
    check = ClientLog()
    whole = ordered(table(events))
    edges = sorted({0, whole.num_rows, *(item % (whole.num_rows + 1) for item in cut)})
    with tempfile.TemporaryDirectory() as directory, small_cells(bits):
        path = Path(directory) / "events.parquet"
        with EventsFile(path) as file:
            for start, stop in pairwise(edges):
                file.write(whole.slice(start, stop - start))
        groups = [
            StoredRowGroup(path, index, start, stop - start)
            for index, (start, stop) in enumerate(pairwise(edges))
        ]
        check.large = WALKED  # type: ignore[misc]
        walked = run_checks([MemoryRowGroup(whole)], [check])
        check.large = PARTITIONED  # type: ignore[misc]
        assert run_checks(groups, [check]) == walked


numbers = st.integers(-1, 12)
lists = st.lists(st.integers(0, 12), max_size=4)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(steps, cuts, st.integers(1, 4), st.data())
def test_of_a_history_that_is_spoiled_at_random(
    taken: list[tuple[int, int]], cut: list[int], bits: int, data: st.DataObject
) -> None:
    events = honest_history(taken)
    positions = [index for index, event in enumerate(events) if event.f in ("send", "poll")]
    assume(positions)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.sampled_from(positions))
        events[position] = data.draw(spoiled(events[position]))
    with small_cells(bits):
        agree(events, cut)


@st.composite
def spoiled(draw: st.DrawFn, event: Event) -> Event:
    change: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"value": draw(numbers)},
                {"offset": draw(numbers)},
                {"acks": draw(st.sampled_from([None, -1, 0, 1]))},
                {"kind": draw(st.sampled_from(["invoke", "ok", "fail", "info"]))},
                {"process": draw(st.sampled_from(["producer-0", "consumer-0", "final-0"]))},
                {"op": draw(st.sampled_from([None, 1, 2, 3]))},
                {"time": draw(st.integers(0, 300))},
                {"high_watermark": draw(numbers)},
                {"offsets": draw(lists)},
                {"values": draw(lists)},
                {"role": "idempotent"},
                {"topic_id": draw(st.sampled_from([None, "later"]))},
                {"key": draw(st.integers(0, 2))},
            ]
        )
    )
    if event.offsets and draw(st.booleans()):
        change = draw(of_records(event.offsets, event.values or []))
    return msgspec.structs.replace(event, **change)


@st.composite
def of_records(draw: st.DrawFn, offsets: list[int], values: list[int]) -> dict[str, Any]:
    """Another record in the place of one, before it, or none."""
    index = draw(st.integers(0, len(offsets) - 1))
    instead = draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=2))
    kept = draw(st.booleans())
    after = index if kept else index + 1
    return {
        "offsets": [*offsets[:index], *(offset for offset, _ in instead), *offsets[after:]],
        "values": [*values[:index], *(value for _, value in instead), *values[after:]],
    }


def differs(number: int) -> bool:
    """Whether a generated history comes to something else when it is divided, as it is or spoiled."""
    rng = Random(f"cuts of {number}")
    cut = [rng.randrange(10_000) for _ in range(rng.randrange(6))]
    with small_cells(1 + number % 4):
        return any(
            results(events, cut, PARTITIONED) != results(events, cut, WALKED)
            for events in (correct_history(number), spoiled_history(number)[2])
        )


def test_of_generated_histories() -> None:
    assert [number for number in range(20) if differs(number)] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("numbers", blocks(0, HISTORIES), ids=str)
def test_of_ten_thousand_histories(numbers: range) -> None:
    assert [number for number in numbers if differs(number)] == []
