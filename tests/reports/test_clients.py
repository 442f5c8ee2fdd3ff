"""Invocations are paired with their completions, whether or not processes share the numbers of operations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.reports.clients import pairs

Row = tuple[int, int, bool]
"""Process, number of the operation, whether it is invoked."""

NUMBERED = [(0, 0, True), (1, 1, True), (1, 1, False), (0, 0, False), (0, 2, True)]


def paired(rows: Sequence[Row]) -> set[tuple[int, int]]:
    process, op, invoke = (np.array(column) for column in zip(*rows, strict=True))
    first, second = pairs(process.astype(np.int64), op.astype(np.int64), invoke.astype(bool))
    return set(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize(
    "rows",
    [
        NUMBERED,
        [(process, 100_000 * op, invokes) for process, op, invokes in NUMBERED],
        [(process, 0 if op < 2 else 1, invokes) for process, op, invokes in NUMBERED],
    ],
    ids=["shared numbers", "numbers far apart", "numbers of each process"],
)
def test_a_completion_belongs_to_the_invocation_of_its_process(rows: list[Row]) -> None:
    assert paired(rows) == {(0, 3), (1, 2)}


def test_numbers_that_come_twice_are_no_pair_of_two_processes() -> None:
    assert paired([(0, 0, True), (1, 0, False)]) == set()
    assert paired([(0, 0, True), (0, 0, False), (1, 0, False), (1, 1, True)]) == {(0, 1)}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), unique=True, min_size=1, max_size=9)
)
def test_all_completed_operations_are_paired(operations: list[tuple[int, int]]) -> None:
    rows = [(*operation, True) for operation in operations]
    rows += [(*operation, False) for operation in reversed(operations)]
    count = len(operations)
    assert paired(rows) == {(row, 2 * count - 1 - row) for row in range(count)}
