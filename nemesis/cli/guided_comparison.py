"""``nemesis mutants --against-blind STARTS``: what planted bugs cost to find, guided and blind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from nemesis.cli.console import err, note, out, say_json
from nemesis.cli.options import require_range
from nemesis.cli.search_request import MAX_SEEDS, SearchRequest, create_exploration
from nemesis.history.run_directory import write_atomically
from nemesis.mutants import MUTANTS
from nemesis.searching import guidance
from nemesis.searching.explore.display import ExplorationProgress
from nemesis.searching.page_parts import GUIDED
from nemesis.support.choices import choose
from nemesis.support.errors import UsageError
from nemesis.support.interrupts import terminable

MAX_STARTS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """The command line, unchecked."""

    starts: int
    mutants: str | None
    """Names with commas between them."""
    search: SearchRequest
    """Its mutant is replaced by each bug, and an empty scenario by that of the bug."""
    page: Path | None
    command: str
    as_json: bool


def run_comparison(request: ComparisonRequest) -> None:
    """Compare the two ways on each bug, and print the costs; raises what ``create_exploration`` raises."""
    require_range("--against-blind", request.starts, 1, MAX_STARTS)
    require_range("--seeds", request.search.seeds, 1, MAX_SEEDS // request.starts)
    if request.page is not None and not request.page.is_file():
        raise UsageError(f"--page is {request.page}: expected the scoreboard, got no file")
    if request.mutants is None:
        raise UsageError("--against-blind needs the bugs: expected --mutant A,B, got none")
    bugs = [choose(MUTANTS, name) for name in request.mutants.split(",")]
    explorations = [
        create_exploration(
            replace(
                request.search,
                scenario=request.search.scenario or bug.scenario,
                mutant=bug.name,
            )
        )
        for bug in bugs
    ]
    comparisons = []
    with terminable():
        for bug, exploration in zip(bugs, explorations, strict=True):
            note(bug.name)
            with ExplorationProgress(err) as progress:
                comparison = guidance.compare(bug, exploration, request.starts, show=progress.show)
            comparisons.append(comparison)
            note(guidance.in_words(comparison))
    if request.page is not None:
        text = request.page.read_text(encoding="utf-8")
        part = guidance.part(comparisons, command=request.command)
        write_atomically(request.page, GUIDED.write(text, part).encode())
    if request.as_json:
        say_json(guidance.rows(comparisons))
    else:
        for comparison in comparisons:
            out.print(guidance.in_words(comparison))
