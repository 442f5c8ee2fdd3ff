"""What is counted, the interval, and the part of the scoreboard that states it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from nemesis.searching.generated import page as pages
from nemesis.searching.generated.results import Status
from nemesis.searching.generated.score import score_table, wilson
from nemesis.searching.page_parts import GENERATED
from nemesis.support.errors import UsageError
from tests.nemesis.searching.generated.records import record

RECORDS = [
    record("a", Status.KILLED, "convergence"),
    record("b", Status.KILLED, "convergence", "lost-write", module="zk/x"),
    record("c", Status.SURVIVED, operator="off-by-one"),
    record("d", Status.SURVIVED),
    record("e", Status.CRASHED),
    record("f", Status.HUNG),
    record("g", Status.NO_EFFECT),
    record("h", Status.NOT_REACHED),
]


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts: tuple[int, int]) -> None:
    successes, trials = counts
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_crashes_and_hangs_are_not_in_the_score() -> None:
    total = score_table(RECORDS).total
    assert (total.drawn, total.reached, total.effective, total.scored) == (8, 7, 6, 4)
    assert total.score == 0.5
    assert total.properties == {"convergence": 2, "lost-write": 1}
    assert total.alone == {"convergence": 1}


def test_an_equivalent_survivor_leaves_the_denominator_and_a_killed_mutant_does_not() -> None:
    assert score_table(RECORDS, {"c"}).total.score == pytest.approx(2 / 3)
    assert score_table(RECORDS, {"a", "e"}).total.score == 0.5


def test_rows_are_packages_and_operators() -> None:
    table = score_table(RECORDS)
    assert [row.label for row in table.by_package] == ["log", "zk"]
    assert [row.label for row in table.by_operator] == ["boundary", "off-by-one"]
    assert sum(row.drawn for row in table.by_operator) == len(RECORDS)


def test_nothing_effective_is_no_score() -> None:
    assert score_table(RECORDS[-2:]).total.score is None
    assert score_table([]).as_json()["total"]["interval"] == [0.0, 1.0]


def test_the_page_states_the_score_and_keeps_the_rest() -> None:
    part = pages.part(score_table(RECORDS), command="nemesis mutants", drawn=9)
    page = GENERATED.write("# Scoreboard\n\nOther text.\n", part)
    assert pages.stated_score(page) == 0.5
    assert "8 of 9 mutants" in page
    assert page.startswith("# Scoreboard\n\nOther text.\n\n")
    other = pages.part(score_table(RECORDS[:2]), command="nemesis mutants", drawn=2)
    again = GENERATED.write(page, other)
    assert pages.stated_score(again) == 1.0
    assert "partial" not in again
    assert again.count("generated mutants: begin") == 1
    assert GENERATED.read(again) == other


def test_a_page_without_a_score_is_refused() -> None:
    with pytest.raises(UsageError, match="got none"):
        pages.stated_score("# Scoreboard\n")


@pytest.mark.parametrize(("stated", "fallen"), [(0.5, False), (0.8, False), (0.9, True)])
def test_a_score_has_fallen_when_its_interval_lies_below_the_stated_one(
    stated: float, fallen: bool
) -> None:
    assert pages.has_fallen(score_table(RECORDS).total, stated) is fallen


def test_survivors_are_listed_with_their_change() -> None:
    assert pages.survivors(RECORDS)[0] == "* `c`: a <= b — was: a < b"
