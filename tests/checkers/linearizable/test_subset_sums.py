"""Sums of some of several amounts: as every subset makes them, and bounded."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.linearizable.subset_sums import MAX_INTERVALS, Budget, SubsetSums


def sums_of(amounts: list[int], budget: Budget | None = None) -> SubsetSums:
    return SubsetSums(budget or Budget()).and_also(amounts)


@given(st.lists(st.integers(-20, 20), max_size=7))
def test_every_subset_and_nothing_else(amounts: list[int]) -> None:
    expected = {
        sum(some) for count in range(len(amounts) + 1) for some in combinations(amounts, count)
    }
    sums = sums_of(amounts)
    assert {number for number in range(-200, 200) if sums.has(number)} == expected
    intervals, is_all = sums.intervals(1000)
    assert is_all
    assert {n for low, high in intervals for n in range(low, high + 1)} == expected
    assert all(after[0] > before[1] + 1 for before, after in pairwise(intervals))


def test_too_many_sums_leave_bounds_and_the_common_divisor() -> None:
    amounts = [3 * 5**n for n in range(MAX_INTERVALS.bit_length())]
    sums = sums_of(amounts)
    assert sums.has(3) is None
    assert sums.has(4) is False
    assert sums.has(-3) is False
    assert sums.has(sum(amounts) + 3) is False
    assert sums.intervals(4) == ([(0, sum(amounts))], False)


def test_a_spent_budget_ends_the_search() -> None:
    budget = Budget(left=100)
    assert sums_of([1], budget).has(1) is True
    assert sums_of([1, 2], budget).has(1) is None
    assert sums_of([1, 2], budget).has(4) is False


def test_sums_beyond_64_bits_do_not_wrap_around() -> None:
    large = 2**61
    sums = sums_of([large, large, large])
    assert sums.has(3 * large + 1) is False
    assert sums.has(-large) is False
    assert sums_of([2**63, -1]).has(2**63 + 1) is False


def test_further_amounts_leave_the_first_sums_as_they_are() -> None:
    first = sums_of([2])
    assert first.and_also([5]).has(7) is True
    assert first.has(7) is False
