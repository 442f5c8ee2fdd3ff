"""``nemesis explore``: many seeds of a scenario in simulation, each with a variation of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nemesis.cli.console import err, note, out, say_json
from nemesis.cli.options import (
    BrokerPropertyList,
    Checkers,
    FaultNames,
    FirstSeed,
    Jobs,
    Json,
    MutantName,
    ScenarioName,
    Seeds,
    Store,
    TimeLimit,
    whole_number,
)
from nemesis.cli.pasted import command
from nemesis.cli.search_request import SearchRequest, create_exploration
from nemesis.searching.explore.display import ExplorationProgress, summary
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.explore.tally import Tally
from nemesis.support.errors import EXIT_CRASH
from nemesis.support.interrupts import terminable
from nemesis.support.paths import short


def explore(
    scenario_name: ScenarioName,
    seeds: Seeds = 100,
    jobs: Jobs = None,
    first_seed: FirstSeed = 1,
    mutant: MutantName = None,
    faults: FaultNames = None,
    broker_property: BrokerPropertyList = None,
    time_limit: TimeLimit = None,
    checkers: Checkers = None,
    stop_on_first: Annotated[
        bool,
        typer.Option(
            "--stop-on-first/--collect", help="Stop at a finding or a crash, or collect all."
        ),
    ] = False,
    real_codec_every: Annotated[
        int,
        typer.Option(
            "--real-codec-every",
            metavar="N",
            parser=whole_number,
            help="Run the first seed and every Nth after it with the real codec too, and compare; 0: never.",
        ),
    ] = 50,
    is_guided: Annotated[
        bool,
        typer.Option("--guided", help="Vary the runs that reached something new; needs --corpus."),
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", metavar="DIR", help="Where --guided keeps those runs."),
    ] = None,
    store: Store = Path("store"),
    is_verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show everything that was reached, with its counts."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run many seeds in simulation, and tell which properties broke."""
    exploration = create_exploration(
        SearchRequest(
            scenario=scenario_name,
            seeds=seeds,
            first_seed=first_seed,
            jobs=jobs,
            store=store,
            time_limit_s=time_limit,
            faults=faults,
            broker_properties=tuple(broker_property or ()),
            mutant=mutant,
            checkers=checkers,
            real_codec_every=real_codec_every,
            is_guided=is_guided,
            corpus=corpus,
        )
    )
    last_seed = first_seed + seeds - 1
    note(
        f"exploring {exploration.scenario.name}: seeds {first_seed} to {last_seed}, "
        f"{exploration.jobs} at a time"
    )
    with terminable(), ExplorationProgress(err) as progress:
        tally = exploration.run(
            progress.show, is_enough=lambda so_far: stop_on_first and so_far.shows_failure
        )
    _say(tally, exploration, is_verbose=is_verbose, as_json=as_json)
    raise typer.Exit(tally.exit_code)


def _say(tally: Tally, exploration: Exploration, *, is_verbose: bool, as_json: bool) -> None:
    guide, mutant = exploration.guide, exploration.mutant
    if as_json:
        asked = {
            "scenario": exploration.scenario.name,
            "mutant": None if mutant is None else mutant.name,
            "mutant_file": None if mutant is None or mutant.file is None else mutant.file.path,
            "first_seed": exploration.first_seed,
            "jobs": exploration.jobs,
        }
        guided = {} if guide is None else {"guided": guide.summary()}
        say_json({**asked, **guided, **tally.as_json()})
        return
    for line in summary(tally, short, is_verbose=is_verbose):
        out.print(line)
    if guide is not None:
        out.print(
            "corpus {corpus}: {entries} runs, {new_entries} of them new; {features} features are known".format(
                **guide.summary()
            )
        )
    out.print(_last_line(tally))


def _last_line(tally: Tally) -> str:
    verdict = tally.verdict.value
    if tally.is_interrupted:
        verdict = f"interrupted; so far {verdict}"
    elif tally.exit_code == EXIT_CRASH:
        verdict = "no verdict: the harness failed"
    runs = [
        result.first_run
        for result in tally.properties_found.values()
        if result.first_run is not None
    ]
    if not runs:
        return f"{verdict}; {tally.done} seeds"
    _, run = min(runs)
    replay, shrink = (command([verb, short(Path(run))]) for verb in ("replay", "shrink"))
    return f"{verdict}; {tally.done} seeds; replay: {replay}; shrink: {shrink}"
