"""The mutation score of a night, from the results of its batches; fails when the score has fallen.

    .venv/bin/python .ci/mutation_score.py night/*/*.jsonl --page docs/scoreboard.md --out summary.md

A score has fallen when its whole 95 % interval lies below the score that the page states. So a few mutants more or
less, which any change of the reference brings, do not fail a night.

Exit code: 1 when the score has fallen, 254 when there are no results or the page states no score, else 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from nemesis.searching.generated.page import has_fallen, headline, part, stated_score, survivors
from nemesis.searching.generated.results import MutantRecord, read_results
from nemesis.searching.generated.score import score_table
from nemesis.searching.generated.survivors import equivalent_mutants
from nemesis.support.errors import UsageError

EXIT_FALLEN = 1
EXIT_USAGE = 254
SURVIVORS = Path("docs/survivors.md")


def main(arguments: Sequence[str]) -> int:
    """Print the score and write the summary; return the exit code."""
    parser = argparse.ArgumentParser(prog="mutation_score.py")
    parser.add_argument("results", type=Path, nargs="+", help="files of JSON lines")
    parser.add_argument("--page", type=Path, default=Path("docs/scoreboard.md"))
    parser.add_argument("--out", type=Path, default=Path("summary.md"))
    options = parser.parse_args(arguments)
    try:
        records = merged(options.results)
        stated = stated_score(options.page.read_text(encoding="utf-8"))
        judged = equivalent_mutants(SURVIVORS)
    except (UsageError, OSError) as error:
        sys.stderr.write(f"mutation_score: {error}\n")
        return EXIT_USAGE
    table = score_table(records, judged)
    lines = [part(table, command="the nightly job", drawn=len(records)), *survivors(records)]
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{headline(table.total)} The scoreboard states {100 * stated:.1f} %.")
    if has_fallen(table.total, stated):
        print(
            "the mutation score has fallen: look at the survivors, or state the new score with its reason"
        )
        return EXIT_FALLEN
    return 0


def merged(files: Sequence[Path]) -> list[MutantRecord]:
    """Return the records of several batches; raises ``UsageError`` when they are not of the same draw and code."""
    headers, records = zip(*map(read_results, files), strict=True)
    if len(set(headers)) > 1:
        raise UsageError("expected results of one draw and one state of the code, got several")
    return [record for batch in records for record in batch]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
