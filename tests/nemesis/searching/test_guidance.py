"""Guided against blind: medians with starts that found nothing, and a real comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.mutants import MUTANTS
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.guidance import Comparison, Start, compare, in_words, part, rows

BUG = MUTANTS["bounce-unseen"]


def start(runs: int, *, is_found: bool = True) -> Start:
    return Start(first_seed=1, runs=runs, simulated_s=10.0 * runs, is_found=is_found)


@pytest.mark.parametrize(
    ("blind", "guided", "ratio"),
    [
        ((start(2), start(4), start(9)), (start(1), start(2), start(3)), "0.5"),
        ((start(2), start(20, is_found=False)), (start(10), start(5)), "≤ 0.5"),
        ((start(10), start(5)), (start(20, is_found=False), start(3)), "≥ 2.0"),
        ((start(9, is_found=False),), (start(9, is_found=False),), "unknown"),
        ((start(2), start(5), start(1, is_found=False)), (start(5), start(5), start(5)), "1.0"),
    ],
)
def test_a_start_that_found_nothing_gives_a_bound(
    blind: tuple[Start, ...], guided: tuple[Start, ...], ratio: str
) -> None:
    assert Comparison(BUG, blind, guided).ratio == ratio


def test_page_and_words_state_every_start() -> None:
    comparison = Comparison(BUG, (start(3), start(20, is_found=False)), (start(2), start(4)))
    page = part([comparison], command="nemesis mutants --against-blind 2")
    cells = "| 2 | 3, >20 | 2, 4 | ≥ 200 | 40 | ≤ 0.2 |"
    assert cells in page
    assert "nemesis mutants --against-blind 2" in page
    assert "runs blind 3, >20; guided 2, 4" in in_words(comparison)
    [row] = rows([comparison])
    assert [item["found"] for item in row["blind"]] == [True, False]


def test_a_real_comparison_finds_an_easy_bug_in_both_ways(tmp_path: Path) -> None:
    bug = MUTANTS["controller-epoch-not-raised"]
    exploration = Exploration(
        scenario=scenarios.override(
            scenarios.load(bug.scenario), runtime="simulation", time_limit_s=20
        ),
        first_seed=1,
        seeds=3,
        jobs=1,
        store=tmp_path,
        command_line=("nemesis", "mutants"),
    )
    comparison = compare(bug, exploration, 1)
    assert all(each.is_found for each in (*comparison.blind, *comparison.guided))
    assert comparison.blind == comparison.guided, "the first run is the same"
