"""Histories that follow from the definitions of other tools are judged as these definitions say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checkers.foreign_cases import CASES, ForeignCase
from tests.checkers.foreign_scoreboard import HISTORIES, RANDOM, verdict_of
from tests.checkers.random_models import DRAWS, count

PAGE = Path("docs/foreign-scoreboard.md")


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.source} {case.workload} {case.name} {case.model}"
)
def test_a_case_is_judged_as_its_definition_says(case: ForeignCase) -> None:
    assert verdict_of(case) == case.expected


def test_the_page_has_a_row_for_each_source_workload_and_model() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| `([^`]+)` \| ([^|]+) \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    expected = {
        (RANDOM, workload, model): HISTORIES for workload in DRAWS for model in count(workload, [0])
    }
    for case in CASES:
        key = (case.source, case.workload, case.model or "–")
        expected[key] = expected.get(key, 0) + 1
    written = {(source, workload, model): int(count) for source, workload, model, count in rows}
    assert written == expected
