"""The nightly job: batches become one score, and a score that has fallen fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nemesis.searching.generated.page import part, stated_score
from nemesis.searching.generated.results import MutantRecord, ResultFile, Status
from nemesis.searching.generated.score import score_table
from nemesis.searching.page_parts import GENERATED
from tests.nemesis.searching.generated.records import HEADER, record

ROOT = Path(__file__).parents[4]
KILLED = [record(f"k{number}", Status.KILLED, "convergence") for number in range(20)]
SURVIVED = [record(f"s{number}", Status.SURVIVED) for number in range(20)]


def night(folder: Path, *batches: list[MutantRecord]) -> tuple[int, str]:
    """Run the script on some batches against a page that states a perfect score of 20 mutants."""
    files = []
    for number, batch in enumerate(batches):
        file = ResultFile(folder / f"batch-{number}.jsonl", HEADER)
        for mutant in batch:
            file.append(mutant)
        files.append(str(file.path))
    page = folder / "scoreboard.md"
    page.write_text(
        GENERATED.write("# Scoreboard\n", part(score_table(KILLED), command="c", drawn=20))
    )
    ran = subprocess.run(
        [sys.executable, ".ci/mutation_score.py", *files, "--page", str(page), "--out", str(folder / "out.md")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def test_a_score_that_stays_is_fine(tmp_path: Path) -> None:
    code, output = night(tmp_path, KILLED[:10], KILLED[10:])
    assert (code, "20 of 20" in output) == (0, True)
    assert "## Generated mutants" in (tmp_path / "out.md").read_text()


def test_a_score_that_has_fallen_fails(tmp_path: Path) -> None:
    code, output = night(tmp_path, KILLED, SURVIVED)
    assert (code, "has fallen" in output) == (1, True)


def test_the_scoreboard_of_this_repository_can_be_compared() -> None:
    assert 0 < stated_score((ROOT / "docs" / "scoreboard.md").read_text()) <= 1
