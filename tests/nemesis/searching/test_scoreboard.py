"""The scoreboard: what a row says, and when it is as it should be."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.model import Verdict
from nemesis.mutants import MUTANTS
from nemesis.searching.explore.mutant_reach import Occurrences, ReachSummary
from nemesis.searching.scoreboard import BROKEN_BY_NO_BUG, Score, in_words, markdown, rows
from nemesis.searching.shrink import Size

MUTANT = MUTANTS["truncate-to-hw"]
CAUGHT = Score(
    mutant=MUTANT,
    seeds=4,
    caught_by=(MUTANT.property, "lost-write"),
    seeds_to_detect=3,
    first_seed=3,
    simulated_s=320.0,
    crashed=0,
    run="store/x/3",
    size=Size(faults=2, operations=5, seconds=20.0, deviations=0),
    verdict=Verdict.INVALID,
    scenario="topics",
    reach=ReachSummary(seeds=4, reached=Occurrences(4, 90), acted=Occurrences(2, 3)),
)
MISSED = replace(
    CAUGHT,
    seeds=200,
    caught_by=(),
    seeds_to_detect=None,
    first_seed=None,
    run=None,
    size=None,
    verdict=Verdict.VALID,
    reach=ReachSummary(seeds=4, reached=Occurrences(1, 9), acted=None),
)
REFERENCE = replace(MISSED, mutant=None, reach=None)


def test_a_bug_must_be_caught_by_the_property_named_for_it() -> None:
    assert CAUGHT.is_as_it_should_be
    assert not MISSED.is_as_it_should_be
    assert not replace(MISSED, caught_by=("lost-write",)).is_as_it_should_be


@pytest.mark.parametrize("verdict", [Verdict.INVALID, Verdict.UNKNOWN])
def test_the_reference_must_be_valid(verdict: Verdict) -> None:
    assert REFERENCE.is_as_it_should_be
    other = replace(REFERENCE, verdict=verdict)
    assert not other.is_as_it_should_be
    assert other.is_wrong == (verdict is Verdict.INVALID)


def test_a_reference_in_doubt_says_why() -> None:
    doubtful = replace(REFERENCE, verdict=Verdict.UNKNOWN, doubts=("200 seeds in doubt, first 1",))
    assert "no finding; **in doubt**: 200 seeds in doubt, first 1." in markdown(
        [doubtful], command=""
    )
    assert in_words(doubtful).endswith("in doubt: 200 seeds in doubt, first 1.")
    assert rows([doubtful])[0]["ok"] is False


def test_a_page_tells_of_every_bug_and_of_the_reference() -> None:
    other = replace(CAUGHT, size=Size(faults=4, operations=10, seconds=20.0, deviations=0))
    page = markdown([CAUGHT, other, MISSED, REFERENCE], command="nemesis mutants")
    assert "Written by `nemesis mutants`." in page
    caught_by = f"{MUTANT.property} | {MUTANT.property}, lost-write"
    counts = "3 (seed 3) | 4 of 4 | 2 of 4 | 2 | 5"
    assert f"| `truncate-to-hw` | {caught_by} | topics | {counts} |" in page
    assert "| nobody | topics | **not caught** in 200 | 1 of 4 | – | – | – |" in page
    assert "3 faults, 7.5 client operations." in page
    assert "The unmodified reference, 200 seeds, 320 simulated seconds: no finding." in page
    assert "by lost-write**" in markdown(
        [replace(REFERENCE, caught_by=("lost-write",))], command=""
    )


@pytest.mark.parametrize(
    ("reached", "acted", "words"),
    [
        (Occurrences(0, 0), None, "; NOT REACHED: the code that it replaces never ran in 4 seeds"),
        (Occurrences(2, 9), Occurrences(1, 3), "; NOT SEEN: reached 9 times in 2 of 4 seeds; acted 3 "),
        (Occurrences(2, 9), Occurrences(0, 0), "seeds; reached 9 times in 2 of 4 seeds; it never acted"),
        (Occurrences(2, 9), None, "seeds; reached 9 times in 2 of 4 seeds; whether it acted is not"),
        (None, None, "seeds; whether it was reached is not counted"),
    ],
)  # fmt: skip
def test_a_missed_bug_was_not_reached_or_not_seen(
    reached: Occurrences | None, acted: Occurrences | None, words: str
) -> None:
    missed = replace(MISSED, reach=ReachSummary(seeds=4, reached=reached, acted=acted))
    assert words in in_words(missed)


def test_people_and_machines_are_told_the_same() -> None:
    assert in_words(CAUGHT).endswith("at seed 3, 2 faults and 5 operations")
    assert "NOT CAUGHT by" in in_words(MISSED)
    assert in_words(REFERENCE).endswith("no finding.")
    reported = rows([CAUGHT, MISSED, REFERENCE])
    assert [row["ok"] for row in reported] == [True, False, True]
    assert (reported[0]["faults"], reported[0]["operations"], reported[0]["seeds_to_detect"]) == (
        2,
        5,
        3,
    )
    assert reported[2]["mutant"] is None
    assert reported[0]["scenario"] == "topics"
    assert reported[0]["reach"]["acted"] == {"seeds": 2, "times": 3}
    assert reported[2]["reach"] is None


def test_the_page_says_what_each_property_has_caught() -> None:
    page = markdown([CAUGHT, MISSED], command="nemesis mutants")
    assert f"| {MUTANT.property} | `truncate-to-hw` |" in page
    assert "| lost-write | `truncate-to-hw` |" in page
    assert "| single-controller | **nobody's** |" in page


def test_every_property_of_the_system_has_caught_a_planted_bug() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scoreboard.md").read_text()
    reported = dict(re.findall(r"^\| ([a-z-]+) \| (.*) \|$", page, flags=re.MULTILINE))
    assert set(CHECKERS) - set(BROKEN_BY_NO_BUG) <= set(reported)
    assert [name for name, bugs in reported.items() if bugs == "**nobody's**"] == []
