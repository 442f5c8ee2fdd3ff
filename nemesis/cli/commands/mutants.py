"""``nemesis mutants``: the scoreboard of the planted bugs; with ``--generated N`` the mutation score, with
``--against-blind STARTS`` what guidance is worth.

Exit codes: 0 every bug was caught and the reference showed nothing; 1 a bug was not caught, or the reference showed a
finding; 2 when the reference is in doubt; 254 and 255 as everywhere.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from nemesis.checkers.framework.model import Verdict
from nemesis.cli.console import err, note, out, say_json
from nemesis.cli.generated_mutants import DEFAULT_SEEDS, GeneratedRequest, run_generated
from nemesis.cli.guided_comparison import ComparisonRequest, run_comparison
from nemesis.cli.mutant_modes import Mode, mode_of
from nemesis.cli.options import (
    FirstSeed,
    Jobs,
    Json,
    MutantName,
    Store,
    TimeLimit,
    given_options,
    require_range,
    whole_number,
)
from nemesis.cli.search_request import SearchRequest, create_exploration
from nemesis.history.errors import HistoryError
from nemesis.history.run_directory import RunDirectory, write_atomically
from nemesis.interfaces.errors import RuntimeFailure
from nemesis.mutants import MUTANTS
from nemesis.mutants.chosen import ChosenMutant
from nemesis.running.mutant_choice import mutant_of_argument
from nemesis.running.simulated.stored import read_spec
from nemesis.searching.explore.display import ExplorationProgress
from nemesis.searching.page_parts import keep_parts
from nemesis.searching.scoreboard import Score, in_words, markdown, rows, score
from nemesis.searching.shrink import Budget, Size, shrink
from nemesis.searching.shrink.shrinker import INTERRUPT
from nemesis.searching.shrink.stored import store_shrunk
from nemesis.support.errors import EXIT_CRASH, MissingRequirement, NemesisError, UsageError
from nemesis.support.interrupts import terminable
from nemesis.support.paths import short

MAX_SHRINK_RUNS: Final = 1_000_000
PLANTED_SEEDS: Final = 200
PAGE: Final = Path("docs/scoreboard.md")
REFERENCE_SCENARIO: Final = "partition-controller"
EXIT_MISSED: Final = 1
EXIT_UNKNOWN: Final = Verdict.UNKNOWN.exit_code


def mutants(
    context: typer.Context,
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            metavar="N",
            parser=whole_number,
            help="Runs of each bug at most. Default: 200; generated: 25.",
        ),
    ] = None,
    jobs: Jobs = None,
    first_seed: FirstSeed = 1,
    mutant: MutantName = None,
    scenario_name: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="SCENARIO",
            help="Where all the bugs are searched; without it each where it can happen.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    shrink_runs: Annotated[
        int,
        typer.Option(
            "--shrink-runs",
            metavar="N",
            parser=whole_number,
            help="Runs for shrinking each counterexample; 0: leave them as they are.",
        ),
    ] = Budget().runs,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE",
            help="The scoreboard. Default: docs/scoreboard.md; with --mutant, generated, against-blind: not written.",
        ),
    ] = None,
    generated: Annotated[
        int | None,
        typer.Option(
            "--generated",
            metavar="N",
            parser=whole_number,
            help="Draw N mutants of the reference at random instead, and state the mutation score.",
        ),
    ] = None,
    draw_seed: Annotated[
        int,
        typer.Option(
            "--seed", metavar="S", parser=whole_number, help="Of the draw of generated mutants."
        ),
    ] = 1,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--module",
            metavar="GLOB",
            help="Draw only in these modules of reference/; may be given again.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="K/N", help="Run only the K-th of N parts of the draw."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="JSON lines of generated mutants; a call goes on with what is there.",
        ),
    ] = None,
    against_blind: Annotated[
        int | None,
        typer.Option(
            "--against-blind",
            metavar="STARTS",
            parser=whole_number,
            help="Search the bugs of --mutant A,B guided and blind, so often each, and compare the costs.",
        ),
    ] = None,
    store: Store = Path("store"),
    as_json: Json = False,
) -> None:
    """Search every planted bug, and the correct reference, and write the scoreboard."""
    mode = mode_of(given_options(context))
    if mode is Mode.GENERATED and generated is not None:
        run_generated(
            GeneratedRequest(
                count=generated,
                draw_seed=draw_seed,
                modules=modules or (),
                batch=batch,
                results=results,
                seeds=DEFAULT_SEEDS if seeds is None else seeds,
                first_seed=first_seed,
                jobs=jobs,
                scenario=scenario_name,
                time_limit_s=time_limit,
                store=store,
                page=page,
                command=shlex.join(("nemesis", *sys.argv[1:])),
                as_json=as_json,
            )
        )
        return
    require_range("--shrink-runs", shrink_runs, 0, MAX_SHRINK_RUNS)
    if mode is Mode.AGAINST_BLIND and against_blind is not None:
        run_comparison(
            ComparisonRequest(
                starts=against_blind,
                mutants=mutant,
                search=SearchRequest(
                    scenario=scenario_name or "",
                    seeds=PLANTED_SEEDS if seeds is None else seeds,
                    first_seed=first_seed,
                    jobs=jobs,
                    store=store,
                    time_limit_s=time_limit,
                ),
                page=page,
                command=shlex.join(("nemesis", *sys.argv[1:])),
                as_json=as_json,
            )
        )
        return
    seeds = PLANTED_SEEDS if seeds is None else seeds
    chosen = mutant_of_argument(mutant)
    searched = [*map(ChosenMutant, MUTANTS), None] if chosen is None else [chosen]
    explorations = {
        name: create_exploration(
            SearchRequest(
                scenario=name,
                seeds=seeds,
                first_seed=first_seed,
                jobs=jobs,
                store=store,
                time_limit_s=time_limit,
                mutant=mutant,
            )
        )
        for name in {_scenario_of(bug, scenario_name): None for bug in searched}
    }
    page = _page(page, mutant)
    first = next(iter(explorations.values()))
    shrinking = _Shrinking(shrink_runs, first.jobs, store, first.command_line)
    scores: list[Score] = []
    with terminable():
        for bug in searched:
            note("the unmodified reference" if bug is None else bug.name)
            exploration = explorations[_scenario_of(bug, scenario_name)]
            with ExplorationProgress(err) as progress:
                scored, tally = score(bug, exploration, shrink=shrinking, show=progress.show)
            if tally.is_interrupted:
                raise KeyboardInterrupt
            scores.append(scored)
    if page is not None:
        text = markdown(scores, command=shlex.join(first.command_line))
        if page.exists():
            text = keep_parts(page.read_text(encoding="utf-8"), text)
        write_atomically(page, text.encode())
    if as_json:
        say_json(rows(scores))
    else:
        for scored in scores:
            out.print(in_words(scored))
        note_on_page = f"; scoreboard: {page}" if page is not None else ""
        missed = sum(not scored.is_as_it_should_be for scored in scores)
        out.print(f"{len(scores) - missed} of {len(scores)} are as they should be{note_on_page}")
    if any(scored.is_wrong for scored in scores):
        raise typer.Exit(EXIT_MISSED)
    if shrinking.has_failed or any(scored.crashed for scored in scores):
        raise typer.Exit(EXIT_CRASH)
    if not all(scored.is_as_it_should_be for scored in scores):
        raise typer.Exit(EXIT_UNKNOWN)


def _page(page: Path | None, mutant: str | None) -> Path | None:
    """Return where the scoreboard is written, None for nowhere; raises ``NemesisError`` if it cannot be.

    One bug has a page of its own: it would replace the rows of all others.
    """
    if page is None:
        page = PAGE if mutant is None else None
    if page is None:
        return None
    if mutant is not None and page.exists():
        raise UsageError(
            f"--page {page}: expected a new file with --mutant, got one that exists: the page would lose all other bugs"
        )
    if not page.parent.is_dir():
        raise MissingRequirement(
            f"the scoreboard cannot be written to {page}: there is no directory {page.parent}"
        )
    return page


def _scenario_of(bug: ChosenMutant | None, demanded: str | None) -> str:
    """Return the scenario in which the bug, or the reference, is searched."""
    if demanded is not None:
        return demanded
    return REFERENCE_SCENARIO if bug is None else bug.load().scenario


@dataclass(slots=True)
class _Shrinking:
    """Shrinks the runs that show the bugs. One that cannot be shrunk does not end the search for the others."""

    runs: int
    jobs: int
    store: Path
    command_line: tuple[str, ...]
    has_failed: bool = False

    def __call__(self, run: RunDirectory, name: str) -> Size | None:
        """Return how small it got, None when it was left as it is."""
        if not self.runs:
            return None
        note(f"  shrinking {short(run.path)}")
        spec, _ = read_spec(run)
        try:
            shrunk = shrink(spec, name=name, budget=Budget(runs=self.runs), jobs=self.jobs)
            if shrunk.stopped_by == INTERRUPT:
                raise KeyboardInterrupt
            if shrunk.is_smaller:
                store_shrunk(shrunk, run, self.store, self.command_line)
        except (NemesisError, RuntimeFailure, HistoryError, OSError) as error:
            self.has_failed = True
            note(f"  it could not be shrunk: {error}")
            return None
        return shrunk.after
