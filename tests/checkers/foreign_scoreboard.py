"""How nemesis judges histories that follow from the definitions of other tools, as a page.

``python -m tests.checkers.foreign_scoreboard docs/foreign-scoreboard.md`` writes the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.checkers.foreign_cases import CASES, ForeignCase
from tests.checkers.random_models import DRAWS, count
from tests.nemesis.judging.foreign_judge import judged

RANDOM: Final = "Random"
HISTORIES: Final = 300
"""Random histories of each workload."""
HEAD: Final = """# External histories on the scoreboard

Written by `python -m tests.checkers.foreign_scoreboard docs/foreign-scoreboard.md`.
The cases are ours: each follows from the definition of a tool or a model (`tests/checkers/foreign_cases.py`).
*Unknown* counts cases without a verdict.
*Random* histories are compared with the definition of each model (`tests/checkers/random_models.py`).
Of these, *unknown* counts histories that the model forbids and that are not `invalid`.
A nightly test compares 10,000 of each.
Times are for judging in this process, on the machine that wrote the page.

| source | workload | model | cases | agree | disagree | unknown | seconds |
|---|---|---|---|---|---|---|---|
"""


@dataclass(slots=True)
class Score:
    agree: int = 0
    unknown: int = 0
    wrong: tuple[str, ...] = ()
    seconds: float = 0.0

    def row(self, source: str, workload: str, model: str) -> str:
        cases = self.agree + self.unknown + len(self.wrong)
        wrong = "; ".join(self.wrong) or "0"
        counts = f"{cases} | {self.agree} | {wrong} | {self.unknown} | {self.seconds:.1f}"
        return f"| {source} | `{workload}` | {model} | {counts} |\n"


def verdict_of(case: ForeignCase) -> str:
    """Return how nemesis judges a case."""
    return str(judged(case.text, case.workload, case.model, case.initial).verdict)


def scores(cases: Iterable[ForeignCase]) -> dict[tuple[str, str, str], Score]:
    """Return the score of each source, workload and model, in the sequence of the cases."""
    table: dict[tuple[str, str, str], Score] = {}
    for case in cases:
        score = table.setdefault((case.source, case.workload, case.model or "–"), Score())
        began = time.perf_counter()
        verdict = verdict_of(case)
        score.seconds += time.perf_counter() - began
        if verdict == case.expected:
            score.agree += 1
        elif verdict == "unknown":
            score.unknown += 1
        else:
            score.wrong += (f"{case.name} is {verdict}",)
    return table


def random_scores() -> dict[tuple[str, str, str], Score]:
    """Return the score of random histories of each workload and model."""
    return {
        (RANDOM, workload, model): Score(
            counted.agree, counted.unknown, counted.wrong, counted.seconds
        )
        for workload in DRAWS
        for model, counted in count(workload, range(HISTORIES)).items()
    }


def page() -> str:
    """Return the page."""
    table = scores(CASES) | random_scores()
    rows = [score.row(*key) for key, score in table.items()]
    return HEAD + "".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    options.page.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
