"""What a planted bug did in many seeds, in words."""

from __future__ import annotations

import pytest

from nemesis.mutants.reach import ReachCounts
from nemesis.searching.explore.display import summary
from nemesis.searching.explore.mutant_reach import Occurrences, summed
from nemesis.searching.explore.tally import Tally
from tests.nemesis.searching.explore.reports import report

NOT_COUNTED = ReachCounts(reached=None, acted=None)


def counts(*pairs: tuple[int, int | None]) -> list[ReachCounts]:
    return [ReachCounts(reached=reached, acted=acted) for reached, acted in pairs]


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (counts((1_200, 3), (0, 0), (5, 0)), "reached 1,205 times in 2 of 3 seeds; acted 3 times in 1"),
        (counts((4, 0), (5, 0)), "reached 9 times in 2 of 2 seeds; it never acted"),
        (counts((4, None)), "reached 4 times in 1 of 1 seeds; whether it acted is not counted"),
        (counts((0, 0), (0, 0)), "not reached in 2 seeds"),
        ([NOT_COUNTED], "whether it was reached is not counted"),
        ([], "whether it was reached is not counted"),
    ],
)  # fmt: skip
def test_the_words_claim_no_more_than_was_counted(seeds: list[ReachCounts], words: str) -> None:
    assert str(summed(seeds)) == words


def test_a_bug_is_never_reached_only_if_that_is_known() -> None:
    assert summed(counts((0, None))).is_never_reached
    assert not summed(counts((1, 0))).is_never_reached
    assert not summed([NOT_COUNTED]).is_never_reached
    assert not summed([]).is_never_reached


def test_the_sum_counts_seeds_and_times() -> None:
    total = summed(counts((3, 0), (4, 2)))
    assert (total.reached, total.acted) == (Occurrences(2, 7), Occurrences(1, 2))


def test_an_exploration_with_a_planted_bug_states_its_counts() -> None:
    tally = Tally(asked=2)
    tally.add(report(1))
    assert tally.as_json()["mutant_reach"] == {}
    assert not any("planted bug" in line for line in summary(tally))
    tally.add(report(2, reach=ReachCounts(reached=3, acted=None)))
    assert tally.as_json()["mutant_reach"] == {"2": {"reached": 3, "acted": None}}
    assert (
        "planted bug: reached 3 times in 1 of 1 seeds; whether it acted is not counted"
        in summary(tally)
    )
