"""How nemesis judges histories that follow from the definitions of other tools, as a page.

``python -m tests.checkers.foreign_scoreboard docs/foreign-scoreboard.md`` writes the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.bench_external import MEASURED, SIZE, Measured, measure
from benchmarks.histories.jepsen import CLIENTS, KEYS
from benchmarks.porcupine_program import WORKLOADS, PorcupineMissing, build, judge
from nemesis.history.foreign.names import Names
from tests.checkers.foreign_cases import CASES, ForeignCase
from tests.checkers.porcupine_calls import calls_of
from tests.checkers.random_models import DRAWS, count
from tests.history.foreign.reading import events_of, read
from tests.nemesis.judging.foreign_judge import judged

RANDOM: Final = "Random"
DASH: Final = "–"
HISTORIES: Final = 300
"""Random histories of each workload."""
HEAD: Final = """# External histories on the scoreboard

Written by `python -m tests.checkers.foreign_scoreboard docs/foreign-scoreboard.md`.
The cases are ours: each follows from the definition of a tool or a model (`tests/checkers/foreign_cases.py`).
*Unknown* counts cases without a verdict.
*Random* histories are compared with the definition of each model (`tests/checkers/random_models.py`).
Of these, *unknown* counts histories that the model forbids and that are `unknown`.
*Undecided* counts histories that the model allows and that are `unknown` because of a finding.
Only `set`, `queue`, `long-fork`, `g-counter`, `pn-counter` and `kafka` may have some.
So may models of sessions: in about half of these histories, each process has at most one committed transaction.
[External histories](external-histories.md) explains how they are judged.
A nightly test compares 10,000 of each.
Times are in seconds, on the machine that wrote the page. Ours are for reading and judging in this process.
Porcupine's are for the same cases in the same run, and for checking alone (`benchmarks/porcupine`).
A dash stands where Porcupine has no model that we gave it.
{porcupine}
| source | workload | model | cases | agree | disagree | unknown | undecided | seconds | Porcupine |
|---|---|---|---|---|---|---|---|---|---|
"""
LARGE: Final = """
## Large histories

Files of {size:,} operations by {clients} clients, registers in {keys:,} keys, as `python -m benchmarks external` writes
them. *File to verdict* is a whole process, *checking* a part of it.
Kernels are compiled before. Each time is the best of three or four.

| workload | file to verdict | checking | Porcupine: file to verdict | Porcupine: checking |
|---|---|---|---|---|
"""


@dataclass(slots=True)
class Score:
    agree: int = 0
    unknown: int = 0
    undecided: int = 0
    wrong: tuple[str, ...] = ()
    seconds: float = 0.0
    porcupine: str = DASH

    def row(self, source: str, workload: str, model: str) -> str:
        cases = self.agree + self.unknown + self.undecided + len(self.wrong)
        wrong = "; ".join(self.wrong) or "0"
        counts = f"{cases} | {self.agree} | {wrong} | {self.unknown} | {self.undecided}"
        times = f"{self.seconds:.1f} | {self.porcupine}"
        return f"| {source} | `{workload}` | {model} | {counts} | {times} |\n"


def verdict_of(case: ForeignCase) -> str:
    """Return how nemesis judges a case."""
    return str(judged(case.text, case.workload, case.model, case.initial).verdict)


def scores(cases: Iterable[ForeignCase]) -> dict[tuple[str, str, str], Score]:
    """Return the score of each source, workload and model, in the sequence of the cases."""
    table: dict[tuple[str, str, str], Score] = {}
    for case in cases:
        score = table.setdefault((case.source, case.workload, case.model or DASH), Score())
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
            counted.agree, counted.unknown, counted.undecided, counted.wrong, counted.seconds
        )
        for workload in DRAWS
        for model, counted in count(workload, range(HISTORIES)).items()
    }


def histories_of(source: str, workload: str) -> list[list[dict[str, Any]]]:
    """Return the histories of a row of the page as Porcupine takes them."""
    if source == RANDOM:
        drawn = (DRAWS[workload](Random(seed)).events for seed in range(HISTORIES))
    else:
        drawn = (
            list(events_of(read(case.text), workload, Names()))
            for case in CASES
            if (case.source, case.workload, case.model) == (source, workload, None)
        )
    return [calls_of(workload, events) for events in drawn]


def add_porcupine(table: dict[tuple[str, str, str], Score], program: Path) -> None:
    """State Porcupine's times in the rows that it can judge."""
    for (source, workload, model), score in table.items():
        if workload in WORKLOADS and model == DASH:
            answers = judge(program, workload, histories_of(source, workload))
            score.porcupine = f"{sum(answer.seconds for answer in answers):.4f}"


def large_row(measured: Measured) -> str:
    """Return the row of a large history."""
    porcupine_times = DASH, DASH
    if measured.porcupine is not None:
        porcupine_times = f"{measured.porcupine_file_s:.1f}", f"{measured.porcupine.check_s:.2f}"
    ours = f"{measured.file_s:.1f} | {measured.check_s:.2f}"
    return f"| `{measured.workload}` | {ours} | {' | '.join(porcupine_times)} |\n"


def page(size: int = SIZE) -> str:
    """Return the page; ``size``: operations of the large histories."""
    table = scores(CASES) | random_scores()
    with TemporaryDirectory(prefix="nemesis-scoreboard-") as name:
        program, why = None, ""
        try:
            program = build(Path(name))
            add_porcupine(table, program)
        except PorcupineMissing as missing:
            why = f"Porcupine was not measured on this machine: {missing}.\n"
        large = [measure(Path(name), workload, size, program) for workload in MEASURED]
    rows = "".join(score.row(*key) for key, score in table.items())
    head = LARGE.format(size=size, clients=CLIENTS, keys=KEYS)
    return HEAD.format(porcupine=why) + rows + head + "".join(map(large_row, large))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    options = parser.parse_args()
    options.page.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
