"""The searches find what is smallest, and ask for little."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from nemesis.searching.shrink.ddmin import fewest, lowest


def asking(counts: Callable[[list[int]], bool], asked: list[list[int]]):  # type: ignore[no-untyped-def]
    def first_of(candidates: Iterable[list[int]]) -> int | None:
        for index, candidate in enumerate(candidates):
            if candidate not in asked:
                asked.append(candidate)
            if counts(candidate):
                return index
        return None

    return first_of


def needs(*wanted: int) -> Callable[[list[int]], bool]:
    return lambda items: set(wanted) <= set(items)


def test_nothing_is_needed() -> None:
    assert fewest([1, 2, 3], asking(needs(), [])) == []


def test_an_empty_sequence_is_as_small_as_it_gets() -> None:
    asked: list[list[int]] = []
    assert fewest([], asking(needs(), asked)) == []
    assert asked == []


@pytest.mark.parametrize("wanted", [(0,), (7,), (3, 4), (0, 7), (1, 4, 6), tuple(range(8))])
def test_exactly_what_is_needed_is_left_in_its_order(wanted: tuple[int, ...]) -> None:
    assert fewest(range(8), asking(needs(*wanted), [])) == list(wanted)


def test_no_item_of_what_is_left_can_be_left_out_even_if_smaller_ones_exist() -> None:
    def counts(items: list[int]) -> bool:
        return items == [5] or sum(items) >= 40

    left = fewest(range(12), asking(counts, []))
    assert counts(left)
    assert not any(counts(left[:index] + left[index + 1 :]) for index in range(len(left)))


def test_a_few_of_thousands_are_found_with_some_hundred_tests() -> None:
    asked: list[list[int]] = []
    assert fewest(range(4_000), asking(needs(17, 1_800, 3_999), asked)) == [17, 1_800, 3_999]
    assert len(asked) < 200


def test_whatever_counts_the_answer_counts_and_is_minimal() -> None:
    for seed in range(200):
        rng = Random(seed)
        wanted = [set(rng.sample(range(20), rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]

        def counts(items: list[int], wanted: list[set[int]] = wanted) -> bool:
            return any(group <= set(items) for group in wanted)

        left = fewest(range(20), asking(counts, []))
        assert set(left) in wanted, (seed, left, wanted)
        assert left == sorted(left)


@pytest.mark.parametrize(
    ("low", "high", "least"), [(0, 100, 0), (0, 100, 1), (3, 99, 57), (0, 8, 8)]
)
def test_the_lowest_number_that_counts(low: int, high: int, least: int) -> None:
    asked: list[int] = []

    def counts(number: int) -> bool:
        asked.append(number)
        return number >= least

    assert lowest(low, high, counts) == least
    assert len(asked) <= 8


def test_an_interval_of_one_number_is_not_tried() -> None:
    assert lowest(5, 5, lambda _: pytest.fail("tried")) == 5
    assert lowest(9, 5, lambda _: pytest.fail("tried")) == 5
